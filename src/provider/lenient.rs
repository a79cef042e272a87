//! Readers that take a value in every shape in which servers have sent it: a field that nobody needs never costs an answer.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Implements `Deserialize` by the methods of a visitor, one for each shape that is taken. What borrows says for how long:
/// `'de: 'a`.
macro_rules! lenient {
    ($name:ty, $lifetime:lifetime $(: $borrowed:lifetime)?, { $($method:item)* }) => {
        impl<$lifetime $(: $borrowed, $borrowed)?> Deserialize<$lifetime> for $name {
            fn deserialize<D: Deserializer<$lifetime>>(from: D) -> Result<Self, D::Error> {
                struct Reader$(<$borrowed>(std::marker::PhantomData<&$borrowed ()>))?;
                impl<$lifetime $(: $borrowed, $borrowed)?> Visitor<$lifetime> for Reader$(<$borrowed>)? {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(stringify!($name))
                    }

                    $($method)*
                }
                from.deserialize_any(lenient!(@ reader $($borrowed)?))
            }
        }
    };
    (@ reader $borrowed:lifetime) => { Reader(std::marker::PhantomData) };
    (@ reader) => { Reader };
}

pub(in crate::provider) use lenient;

/// Reads a list and drops it.
pub(in crate::provider) fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Reads an object and drops it; whether there was anything in it.
pub(in crate::provider) fn skip_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<bool, A::Error> {
    let mut any = false;
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
        any = true;
    }
    Ok(any)
}

/// Text, or none where something else came.
#[derive(Debug, Default)]
pub(in crate::provider) struct Words(pub(in crate::provider) Option<String>);

lenient!(Words, 'de, {
    fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words(Some(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Words, E> {
        Ok(Words(Some(text)))
    }

    fn visit_unit<E: Error>(self) -> Result<Words, E> {
        Ok(Words(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Words, E> {
        Ok(Words(None))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Words, E> {
        Ok(Words(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Words, E> {
        Ok(Words(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Words, E> {
        Ok(Words(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Words, A::Error> {
        skip_list(list).map(|()| Words(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Words, A::Error> {
        skip_object(object).map(|_| Words(None))
    }
});

/// Text, borrowed where nothing in it is escaped; empty where something else came.
#[derive(Default)]
pub(in crate::provider) struct Brief<'a>(pub(in crate::provider) Cow<'a, str>);

impl Brief<'_> {
    pub(in crate::provider) fn text(&self) -> &str {
        &self.0
    }

    /// The text, copied where it is borrowed.
    pub(in crate::provider) fn into_text(self) -> String {
        self.0.into_owned()
    }

    /// The text, where there is any.
    pub(in crate::provider) fn get(&self) -> Option<&str> {
        Some(self.text()).filter(|text| !text.is_empty())
    }
}

lenient!(Brief<'a>, 'de: 'a, {
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Brief<'a>, E> {
        Ok(Brief(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Brief<'a>, E> {
        Ok(Brief(text.to_owned().into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Brief<'a>, E> {
        Ok(Brief::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Brief<'a>, E> {
        Ok(Brief::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Brief<'a>, E> {
        Ok(Brief::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Brief<'a>, E> {
        Ok(Brief::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Brief<'a>, E> {
        Ok(Brief::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Brief<'a>, A::Error> {
        skip_list(list).map(|()| Brief::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Brief<'a>, A::Error> {
        skip_object(object).map(|_| Brief::default())
    }
});

/// A count of tokens: a number, a number as text, or none.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::provider) struct Count(pub(in crate::provider) Option<u64>);

lenient!(Count, 'de, {
    fn visit_u64<E: Error>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }

    fn visit_i64<E: Error>(self, _negative: i64) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_f64<E: Error>(self, count: f64) -> Result<Count, E> {
        // Resellers weight their counts. The cast saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Count((count >= 0.0).then(|| count.round() as u64)))
    }

    fn visit_str<E: Error>(self, count: &str) -> Result<Count, E> {
        Ok(Count(count.trim().parse().ok()))
    }

    fn visit_unit<E: Error>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Count, A::Error> {
        skip_list(list).map(|()| Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Count, A::Error> {
        skip_object(object).map(|_| Count(None))
    }
});

/// Whether there is something: `null`, `false`, `""` and `{}` are nothing.
#[derive(Debug, Default)]
pub(in crate::provider) struct Present(pub(in crate::provider) bool);

lenient!(Present, 'de, {
    fn visit_unit<E: Error>(self) -> Result<Present, E> {
        Ok(Present(false))
    }

    fn visit_bool<E: Error>(self, there: bool) -> Result<Present, E> {
        Ok(Present(there))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Present, E> {
        Ok(Present(!text.is_empty()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Present, E> {
        Ok(Present(number != 0))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Present, E> {
        Ok(Present(true))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Present, E> {
        Ok(Present(true))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Present, A::Error> {
        skip_list(list).map(|()| Present(true))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Present, A::Error> {
        skip_object(object).map(Present)
    }
});

/// The fields of an object, or their defaults where something else came.
#[derive(Debug, Default)]
pub(in crate::provider) struct Fields<T>(pub(in crate::provider) T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Reader<T> {
            type Value = Fields<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Fields<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(object)).map(Fields)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Fields<T>, A::Error> {
                skip_list(list).map(|()| Fields::default())
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Fields<T>, E> {
                Ok(Fields::default())
            }

            fn visit_unit<E: Error>(self) -> Result<Fields<T>, E> {
                Ok(Fields::default())
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Fields<T>, E> {
                Ok(Fields::default())
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Fields<T>, E> {
                Ok(Fields::default())
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Fields<T>, E> {
                Ok(Fields::default())
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Fields<T>, E> {
                Ok(Fields::default())
            }
        }
        from.deserialize_any(Reader(PhantomData))
    }
}

/// The elements of a list, each with its fields or their defaults; none where something else came.
#[derive(Debug, Default)]
pub(in crate::provider) struct List<T>(pub(in crate::provider) Vec<T>);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Reader<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
                let mut elements = Vec::with_capacity(list.size_hint().unwrap_or(0).min(64));
                while let Some(Fields(element)) = list.next_element()? {
                    elements.push(element);
                }
                Ok(List(elements))
            }

            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<List<T>, A::Error> {
                skip_object(object).map(|_| List(Vec::new()))
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<List<T>, E> {
                Ok(List(Vec::new()))
            }

            fn visit_unit<E: Error>(self) -> Result<List<T>, E> {
                Ok(List(Vec::new()))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<List<T>, E> {
                Ok(List(Vec::new()))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<List<T>, E> {
                Ok(List(Vec::new()))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<List<T>, E> {
                Ok(List(Vec::new()))
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<List<T>, E> {
                Ok(List(Vec::new()))
            }
        }
        from.deserialize_any(Reader(PhantomData))
    }
}

/// The first element of a list, with its fields or their defaults; none of an empty list, or where something else came.
pub(in crate::provider) struct First<T>(pub(in crate::provider) Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Reader<T> {
            type Value = First<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<T>, A::Error> {
                let first = list.next_element::<Fields<T>>()?.map(|Fields(first)| first);
                skip_list(list).map(|()| First(first))
            }

            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<First<T>, A::Error> {
                skip_object(object).map(|_| First(None))
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_unit<E: Error>(self) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<First<T>, E> {
                Ok(First(None))
            }
        }
        from.deserialize_any(Reader(PhantomData))
    }
}
