//! What the roles share: parameters, seeded bodies, runs of numbers, digests and tagged values.

use lapin::types::{AMQPValue, DecimalValue, FieldTable};
use lapin::{Connection, ErrorKind};
use serde_json::{json, Map, Value};
use sha2::{Digest as _, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time in nanoseconds.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_nanos() as i64).unwrap_or(0)
}

/// The parameters of a role: what the coordinator gave over the command line; the rest by default.
pub struct Parameters(pub Map<String, Value>);

impl Parameters {
    pub fn text(&self, name: &str, otherwise: &str) -> String {
        self.0.get(name).and_then(Value::as_str).unwrap_or(otherwise).to_string()
    }

    pub fn number(&self, name: &str, otherwise: i64) -> i64 {
        self.0.get(name).and_then(Value::as_i64).unwrap_or(otherwise)
    }

    pub fn rate(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    pub fn flag(&self, name: &str, otherwise: bool) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(otherwise)
    }

    pub fn list(&self, name: &str) -> &[Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub fn body(&self, sequence: i64) -> Vec<u8> {
        body(self.number("seed", 1) as u32, sequence as usize, self.number("message_bytes", 0) as usize)
    }
}

/// Give n bytes of message i: the first 31 bytes of a hash, over and over.
fn body(seed: u32, i: usize, n: usize) -> Vec<u8> {
    let pattern = Sha256::digest(format!("{seed}.{i}"));
    pattern[..31].iter().copied().cycle().take(n).collect()
}

/// Give the offset where two bodies part, if they do.
pub fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let shorter = one.len().min(other.len());
    let parted = one.iter().zip(other).position(|(a, b)| a != b);
    parted.or_else(|| (one.len() != other.len()).then_some(shorter))
}

/// Write numbers as they happened, ascending neighbours together: 0-3,5,4,6-49.
pub fn runs(numbers: &[i64]) -> String {
    let grouped = numbers.chunk_by(|one, next| *next == one + 1);
    let texts = grouped.map(|run| match run {
        [only] => only.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    texts.collect::<Vec<_>>().join(",")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn sha256(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

/// The digest of a list of bodies; empty where only counts are asked for.
pub struct Digest(Option<Sha256>);

impl Digest {
    pub fn new(check: &str) -> Self {
        Self((check == "hash").then(Sha256::new))
    }

    pub fn add(&mut self, body: &[u8]) {
        if let Some(sum) = &mut self.0 {
            sum.update(Sha256::digest(body));
        }
    }

    pub fn text(&self) -> String {
        self.0.clone().map(|sum| hex(&sum.finalize())).unwrap_or_default()
    }
}

/// How the broker closed, or what else went wrong.
#[derive(Default)]
pub struct Fault {
    pub closed: Option<Value>,
    pub error: String,
}

impl Fault {
    pub fn is_set(&self) -> bool {
        self.closed.is_some() || !self.error.is_empty()
    }

    pub fn note(&mut self, error: &lapin::Error, connection: Option<&Connection>) {
        if self.is_set() {
            return;
        }
        match error.kind() {
            ErrorKind::ProtocolError(told) => {
                let hard = error.is_amqp_hard_error() || connection.is_some_and(|one| !one.status().connected());
                let level = if hard { "connection" } else { "channel" };
                self.closed = Some(json!({"level": level, "code": told.get_id(), "text": told.get_message().as_str()}));
            }
            _ => self.error = error.to_string(),
        }
    }
}

pub fn text(headers: &FieldTable, name: &str) -> Option<String> {
    match headers.inner().get(name)? {
        AMQPValue::LongString(value) => Some(String::from_utf8_lossy(value.as_bytes()).into_owned()),
        AMQPValue::ShortString(value) => Some(value.as_str().to_string()),
        _ => None,
    }
}

pub fn boolean(headers: &FieldTable, name: &str) -> Option<bool> {
    match headers.inner().get(name)? {
        AMQPValue::Boolean(value) => Some(*value),
        _ => None,
    }
}

/// Read a header of any integer type.
pub fn integer(headers: &FieldTable, name: &str) -> Option<i64> {
    Some(match headers.inner().get(name)? {
        AMQPValue::ShortShortInt(value) => i64::from(*value),
        AMQPValue::ShortShortUInt(value) => i64::from(*value),
        AMQPValue::ShortInt(value) => i64::from(*value),
        AMQPValue::ShortUInt(value) => i64::from(*value),
        AMQPValue::LongInt(value) => i64::from(*value),
        AMQPValue::LongUInt(value) => i64::from(*value),
        AMQPValue::LongLongInt(value) => *value,
        _ => return None,
    })
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
        AMQPValue::DecimalValue(value) => json!(["D", value.scale.to_string(), (value.value as i32).to_string()]),
        AMQPValue::ShortString(value) => json!(["S", value.as_str()]),
        AMQPValue::LongString(value) => match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => json!(["S", text]),
            Err(_) => json!(["x", hex(value.as_bytes())]),
        },
        AMQPValue::Timestamp(value) => json!(["T", value.to_string()]),
        AMQPValue::ByteArray(value) => json!(["x", hex(value.as_slice())]),
        AMQPValue::FieldArray(items) => json!(["A", items.as_slice().iter().map(tag).collect::<Vec<_>>()]),
        AMQPValue::FieldTable(table) => json!(["F", tag_table(table)]),
        AMQPValue::Void => json!(["V"]),
    }
}

pub fn tag_table(table: &FieldTable) -> Value {
    Value::Object(table.inner().iter().map(|(name, value)| (name.as_str().to_string(), tag(value))).collect())
}

/// Give the library's header table for a tagged one, or say what it has no value for.
pub fn untag_table(tagged: &Value) -> Result<FieldTable, String> {
    let mut table = FieldTable::default();
    for (name, value) in tagged.as_object().into_iter().flatten() {
        table.insert(name.as_str().into(), untag(value)?);
    }
    Ok(table)
}

fn untag(tagged: &Value) -> Result<AMQPValue, String> {
    let word = |at: usize| tagged[at].as_str().unwrap_or_default();
    let number = || word(1).parse::<i64>().map_err(|error| format!("{tagged}: {error}"));
    let bits = || u64::from_str_radix(word(1).trim_start_matches("0x"), 16).map_err(|error| format!("{tagged}: {error}"));
    Ok(match word(0) {
        "t" => AMQPValue::Boolean(tagged[1] == json!(true)),
        "b" => AMQPValue::ShortShortInt(number()? as i8),
        "B" => AMQPValue::ShortShortUInt(number()? as u8),
        "s" => AMQPValue::ShortInt(number()? as i16),
        "u" => AMQPValue::ShortUInt(number()? as u16),
        "I" => AMQPValue::LongInt(number()? as i32),
        "i" => AMQPValue::LongUInt(number()? as u32),
        "l" => AMQPValue::LongLongInt(number()?),
        "T" => AMQPValue::Timestamp(number()? as u64),
        "f" => AMQPValue::Float(f32::from_bits(bits()? as u32)),
        "d" => AMQPValue::Double(f64::from_bits(bits()?)),
        "D" => {
            let value = word(2).parse::<i32>().map_err(|error| format!("{tagged}: {error}"))?;
            AMQPValue::DecimalValue(DecimalValue { scale: number()? as u8, value: value as u32 })
        }
        "S" => AMQPValue::LongString(word(1).into()),
        "x" => AMQPValue::ByteArray(unhex(word(1)).into()),
        "V" => AMQPValue::Void,
        "A" => {
            let items = tagged[1].as_array().into_iter().flatten().map(untag);
            AMQPValue::FieldArray(items.collect::<Result<Vec<_>, _>>()?.into())
        }
        "F" => AMQPValue::FieldTable(untag_table(&tagged[1])?),
        other => return Err(format!("lapin has no header value of type {other}")),
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).filter_map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()).collect()
}
