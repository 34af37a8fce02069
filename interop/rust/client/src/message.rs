//! Messages: seeded bodies, envelopes, properties, and header values as tagged JSON.

use lapin::types::{AMQPType, AMQPValue, DecimalValue, FieldTable};
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn sha256(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

/// Carry an envelope as the RabbitMQ binding says; what is absent stays absent.
pub fn project(body: Vec<u8>) -> Result<(Vec<u8>, BasicProperties)> {
    let read: Value = serde_json::from_slice(&body)?;
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
        "kind": job.or(read["urn"].as_str()), "correlation_id": read["trace_id"], "message_id": meta["id"],
        "app_id": "babelqueue", "content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": 2,
    }))?;
    Ok((body, properties.with_headers(untag_table(&headers))))
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
        AMQPValue::Float(value) => json!(["f", format!("0x{:08x}", value.to_bits())]),
        AMQPValue::Double(value) => json!(["d", format!("0x{:016x}", value.to_bits())]),
        AMQPValue::DecimalValue(it) => json!(["D", it.scale.to_string(), (it.value as i32).to_string()]),
        AMQPValue::LongString(value) => match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => json!(["S", text]),
            Err(_) => json!(["x", hex(value.as_bytes())]),
        },
        AMQPValue::ByteArray(value) => json!(["x", hex(value.as_slice())]),
        AMQPValue::FieldArray(items) => json!(["A", items.as_slice().iter().map(tag).collect::<Vec<_>>()]),
        AMQPValue::FieldTable(table) => json!(["F", tag_fields(table)]),
        other => {
            let named = serde_json::to_value(other).unwrap_or_default(); // {"LongInt": 7}, or "Void"
            let values = named.as_object().into_iter().flat_map(|named| named.values()).map(Value::to_string);
            json!([other.get_type().get_id().to_string()].into_iter().chain(values).collect::<Vec<_>>())
        }
    }
}

fn tag_fields(table: &FieldTable) -> Value {
    table.inner().iter().map(|(name, value)| (name.as_str(), tag(value))).collect()
}

/// Give the headers of a message with their values tagged.
pub fn tag_table(properties: &BasicProperties) -> Value {
    properties.headers().as_ref().map_or(json!({}), tag_fields)
}

fn untag(tagged: &Value) -> AMQPValue {
    let word = |at: usize| tagged[at].as_str().unwrap_or_default();
    let bits = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_default();
    let items = || tagged[1].as_array().into_iter().flatten();
    match word(0) {
        "f" => AMQPValue::Float(f32::from_bits(bits(word(1)) as u32)),
        "d" => AMQPValue::Double(f64::from_bits(bits(word(1)))),
        "D" => {
            let [scale, value] = [1, 2].map(|at| word(at).parse::<i32>().unwrap_or_default());
            AMQPValue::DecimalValue(DecimalValue { scale: scale as u8, value: value as u32 })
        }
        "S" => AMQPValue::LongString(word(1).into()),
        "x" => {
            let pairs = (0..word(1).len()).step_by(2).map(|at| &word(1)[at..at + 2]);
            AMQPValue::ByteArray(pairs.map(|pair| bits(pair) as u8).collect::<Vec<_>>().into())
        }
        "A" => AMQPValue::FieldArray(items().map(untag).collect::<Vec<_>>().into()),
        "F" => AMQPValue::FieldTable(untag_table(&tagged[1])),
        tag => {
            let value = word(1).parse::<i64>().map_or(tagged[1].clone(), Value::from);
            let kind = tag.chars().next().and_then(AMQPType::from_id);
            kind.and_then(|kind| AMQPValue::try_from(&value, kind)).unwrap_or(AMQPValue::Void)
        }
    }
}

/// Give the library's header table for a tagged one.
pub fn untag_table(tagged: &Value) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in tagged.as_object().into_iter().flatten() {
        table.insert(name.as_str().into(), untag(value));
    }
    table
}
