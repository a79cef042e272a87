//! A letter turned into a value of a Rust type: `cargo run --example extract --features schemars`. No key, no setup.
//!
//! The schema comes from the type. The first answer does not fit it, so the model is told what is wrong and asked again; a
//! second letter shows the error when nobody asks again.

use schemars::JsonSchema;
use serde::Deserialize;
use std::error::Error;
use steadfast::provider::Anthropic;
use steadfast::record::Issues;
use steadfast::testing::{Answer, FakeProvider};
use steadfast::{Call, Client, ErrorCode, Target};

/// An invoice as it was written.
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)] // printed
struct Invoice {
    /// The number on it.
    number: String,
    /// The sum, in cents.
    total: u32,
    /// When it has to be paid, where it says so.
    due: Option<String>,
    lines: Vec<Line>,
    payment: Payment,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Line {
    what: String,
    cents: u32,
}

/// How it is to be paid.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
#[allow(dead_code)]
enum Payment {
    Transfer { iban: String },
    Cash,
}

const LETTER: &str = "Invoice 2024-7. Tea 3.50, cake 9.00, together 12.50 EUR. Please transfer it to DE02 1203.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (wrong, right) = (
        r#"{"number": "2024-7", "total": "12.50", "lines": [{"what": "Tea"}], "payment": {"by": "transfer"}}"#,
        r#"{"number": "2024-7", "total": 1250, "due": null, "payment": {"by": "transfer", "iban": "DE02 1203"},
            "lines": [{"what": "Tea", "cents": 350}, {"what": "Cake", "cents": 900}]}"#,
    );
    let fake = FakeProvider::anthropic()
        .then(Answer::text(wrong))
        .then(Answer::text(right))
        .otherwise(Answer::text(wrong))
        .start()
        .await?;
    let target = Target::new(Anthropic::new("a-key").base_url(&fake.base_url()), "claude-sonnet-4-6");
    let client = Client::builder(target).build()?;
    let call = Call::user(LETTER).system("Read the invoice.").max_tokens(500);

    let extracted = client.extract::<Invoice>(call.clone().reask(1)).await?;
    println!("{:#?}\n", extracted.value);
    for failed in extracted.reply.attempts() {
        println!("asked again after: {}", failed.error);
    }

    match client.extract::<Invoice>(call).await {
        Ok(_) => Err("it fits?".into()),
        Err(error) => {
            println!("\nnot asked again: {error}");
            if let (Some(ErrorCode::SchemaMismatch), Some(Issues::Schema { mismatches })) =
                (error.code(), error.issues())
            {
                for fault in mismatches {
                    println!("  {:<18} {}", fault.path, fault.message);
                }
            }
            println!("what it said: {}", error.partial().map_or("", |reply| reply.text()));
            Ok(())
        }
    }
}
