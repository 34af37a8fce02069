//! Messages: seeded bodies, envelopes, properties, and header values as tagged JSON.

use lapin::types::{AMQPValue, DecimalValue, FieldTable};
use lapin::BasicProperties;
use serde_json::{json, Value};
use sha2::{Digest as _, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Unix time in nanoseconds.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

/// Give the body of a message: the first 31 bytes of a hash, over and over.
pub fn make_body(seed: u64, sequence: u64, size: usize) -> Vec<u8> {
    let mut body = Sha256::digest(format!("{seed}.{sequence}"))[..31].repeat(size / 31 + 1);
    body.truncate(size);
    body
}

/// Give the offset where two bodies part, or -1.
pub fn first_difference(one: &[u8], other: &[u8]) -> i64 {
    let parted = one.iter().zip(other).position(|(a, b)| a != b);
    let longer = (one.len() != other.len()).then_some(one.len().min(other.len()));
    parted.or(longer).map_or(-1, |at| at as i64)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|one| one.to_digit(16)).map(|one| one as u8).collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

pub fn sha256(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

/// Carry an envelope as the RabbitMQ binding says; what is absent stays absent.
pub fn project(body: &[u8]) -> Result<BasicProperties> {
    let read: Value = serde_json::from_slice(body)?;
    let meta = &read["meta"];
    let number = |value: &Value| value.as_i64().map(|number| number.to_string());
    let mut headers = json!({
        "x-schema-version": ["I", number(&meta["schema_version"])], "x-attempts": ["I", number(&read["attempts"])],
        "x-source-lang": ["S", meta["lang"]],
    });
    retain(&mut headers, |tagged| !tagged[1].is_null());
    let blank = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];
    let job = read["job"].as_str().filter(|job| !job.trim_matches(blank).is_empty());
    let properties: BasicProperties = serde_json::from_value(json!({
        "kind": job.or(read["urn"].as_str()), "correlation_id": read["trace_id"],
        "message_id": meta["id"], "app_id": "babelqueue", "content_type": "application/json",
        "content_encoding": "utf-8", "delivery_mode": 2,
    }))?;
    Ok(properties.with_headers(untag_table(&headers)))
}

fn retain(object: &mut Value, wanted: impl Fn(&Value) -> bool) {
    object.as_object_mut().into_iter().for_each(|members| members.retain(|_, value| wanted(value)));
}

/// Give the properties that are set; the library calls the type a kind.
pub fn properties_of(from: &BasicProperties) -> Result<Value> {
    let mut found = serde_json::to_value(from)?;
    found["type"] = found["kind"].take();
    for other in ["headers", "timestamp", "cluster_id"] {
        found[other].take();
    }
    retain(&mut found, |value| !value.is_null());
    Ok(found)
}

fn tag(value: &AMQPValue) -> Value {
    match value {
        AMQPValue::Boolean(value) => json!(["t", value]),
        AMQPValue::ShortShortInt(value) => json!(["b", value.to_string()]),
        AMQPValue::ShortShortUInt(value) => json!(["B", value.to_string()]),
        AMQPValue::ShortInt(value) => json!(["s", value.to_string()]),
        AMQPValue::ShortUInt(value) => json!(["u", value.to_string()]),
        AMQPValue::LongInt(value) => json!(["I", value.to_string()]),
        AMQPValue::LongUInt(value) => json!(["i", value.to_string()]),
        AMQPValue::LongLongInt(value) => json!(["l", value.to_string()]),
        AMQPValue::Float(value) => json!(["f", format!("0x{:08x}", value.to_bits())]),
        AMQPValue::Double(value) => json!(["d", format!("0x{:016x}", value.to_bits())]),
        AMQPValue::DecimalValue(it) => json!(["D", it.scale.to_string(), (it.value as i32).to_string()]),
        AMQPValue::ShortString(value) => json!(["S", value.as_str()]),
        AMQPValue::LongString(value) => match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => json!(["S", text]),
            Err(_) => json!(["x", hex(value.as_bytes())]),
        },
        AMQPValue::Timestamp(value) => json!(["T", value.to_string()]),
        AMQPValue::ByteArray(value) => json!(["x", hex(value.as_slice())]),
        AMQPValue::FieldArray(items) => json!(["A", items.as_slice().iter().map(tag).collect::<Vec<_>>()]),
        AMQPValue::FieldTable(table) => json!(["F", tag_fields(table)]),
        AMQPValue::Void => json!(["V"]),
    }
}

fn tag_fields(table: &FieldTable) -> Value {
    table.inner().iter().map(|(name, value)| (name.as_str(), tag(value))).collect()
}

/// Give the headers of a message with their values tagged.
pub fn tag_table(properties: &BasicProperties) -> Value {
    properties.headers().as_ref().map_or(json!({}), tag_fields)
}

/// Give the library's header table for a tagged one.
pub fn untag_table(tagged: &Value) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in tagged.as_object().into_iter().flatten() {
        table.insert(name.as_str().into(), untag(value));
    }
    table
}

fn untag(tagged: &Value) -> AMQPValue {
    let word = |at: usize| tagged[at].as_str().unwrap_or_default();
    let number = || word(1).parse::<i64>().unwrap_or_default();
    let bits = || u64::from_str_radix(word(1).trim_start_matches("0x"), 16).unwrap_or_default();
    match word(0) {
        "t" => AMQPValue::Boolean(tagged[1] == true),
        "b" => AMQPValue::ShortShortInt(number() as i8),
        "B" => AMQPValue::ShortShortUInt(number() as u8),
        "s" => AMQPValue::ShortInt(number() as i16),
        "u" => AMQPValue::ShortUInt(number() as u16),
        "I" => AMQPValue::LongInt(number() as i32),
        "i" => AMQPValue::LongUInt(number() as u32),
        "l" => AMQPValue::LongLongInt(number()),
        "T" => AMQPValue::Timestamp(number() as u64),
        "f" => AMQPValue::Float(f32::from_bits(bits() as u32)),
        "d" => AMQPValue::Double(f64::from_bits(bits())),
        "D" => {
            let value = word(2).parse::<i32>().unwrap_or_default() as u32;
            AMQPValue::DecimalValue(DecimalValue { scale: number() as u8, value })
        }
        "S" => AMQPValue::LongString(word(1).into()),
        "x" => AMQPValue::ByteArray(unhex(word(1)).into()),
        "A" => {
            let items = tagged[1].as_array().into_iter().flatten();
            AMQPValue::FieldArray(items.map(untag).collect::<Vec<_>>().into())
        }
        "F" => AMQPValue::FieldTable(untag_table(&tagged[1])),
        _ => AMQPValue::Void,
    }
}
