use super::*;

#[test]
fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
    let numbers = |random: &Random| [random.bits(), random.bits(), random.unit().to_bits()];
    assert_eq!(numbers(&Random::seeded(7)), numbers(&Random::seeded(7)));
    assert_ne!(numbers(&Random::seeded(7)), numbers(&Random::seeded(8)));
}

#[test]
fn clones_draw_from_one_source() {
    let (one, reference) = (Random::seeded(7), Random::seeded(7));
    let other = one.clone();
    assert_eq!([one.bits(), other.bits()], [reference.bits(), reference.bits()]);
}

#[test]
fn without_a_seed_every_source_is_different() {
    assert_ne!(Random::from_entropy().bits(), Random::default().bits());
}

#[test]
fn a_unit_is_at_least_zero_and_less_than_one_and_spread() {
    let random = Random::seeded(7);
    let units: Vec<_> = (0..1_000).map(|_| random.unit()).collect();
    assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
    let mean = units.iter().sum::<f64>() / 1_000.0;
    assert!((0.45..0.55).contains(&mean), "{mean}");
}
