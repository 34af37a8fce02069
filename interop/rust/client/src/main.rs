//! The Rust client of the lab (docs/reference/lab-protocol.md), on the crate lapin.
//!
//! It does what it is told and reports what it did; it never judges. This file is the control
//! conversation; `sender` and `receiver` play the roles, `message` makes and reads messages.

mod message;
mod receiver;
mod sender;

use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use message::{boolean, integer, now, text, Parameters};
use receiver::Receiver;
use sender::Sender;
use serde_json::{json, Map, Value};
use std::collections::HashMap;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TESTS: [&str; 8] = [
    "TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize", "TC5_PubSubMessageSize", "Circuit",
    "Envelope", "FieldTable",
];
const OURS: [&str; 9] =
    ["-b", "-p", "-v", "username", "password", "client_name", "control_key", "control_timeout", "start_timeout"];

/// What a client did: a count, a sender's correlation id, and the body.
pub struct Report {
    pub count: i32,
    pub correlation_id: Option<String>,
    pub body: Value,
}

#[derive(Clone)]
enum Role {
    Sender(Arc<tokio::sync::Mutex<Sender>>),
    Receiver(Arc<Receiver>),
}

pub struct Client {
    pub name: String,
    key: String,
    pub url: String,
    instance: String,
    given: Map<String, Value>,
    control: Channel,
    roles: Mutex<HashMap<String, Role>>,
    assigned: AtomicU64,
    begun: Instant,
    heard: AtomicU64, // milliseconds since the start at which anything was heard; 0 before the first ENLIST
}

fn stop(code: i32, why: &str) -> ! {
    eprintln!("rust client: {why}");
    exit(code)
}

fn read_arguments() -> HashMap<String, String> {
    let defaults = [
        ("-b", "127.0.0.1"), ("-p", "5672"), ("-v", "/"), ("username", "guest"), ("password", "guest"),
        ("client_name", "rust"), ("control_key", "iop.control"), ("control_timeout", "60"),
    ];
    let mut options: HashMap<String, String> = defaults.map(|(name, value)| (name.into(), value.into())).into();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.split_once('=') {
            _ if ["-b", "-p", "-v"].contains(&word.as_str()) => match words.next() {
                Some(value) => drop(options.insert(word, value)),
                None => stop(2, &format!("{word} needs a value")),
            },
            Some((name, value)) if !name.is_empty() && !name.starts_with('-') => {
                options.insert(name.into(), value.into());
            }
            _ => stop(2, &format!("{word} is neither -b, -p, -v nor name=value")),
        }
    }
    if options["control_timeout"].parse::<f64>().is_err() || options["-p"].parse::<u16>().is_err() {
        stop(2, "the port and control_timeout are numbers");
    }
    options
}

fn escape(text: &str) -> String {
    text.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02x}") }).collect()
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = read_arguments();
    let url = format!(
        "amqp://{}:{}@{}:{}/{}?heartbeat=30&connection_timeout=50000",
        escape(&options["username"]), escape(&options["password"]), options["-b"], options["-p"], escape(&options["-v"])
    );
    match converse(&options, url).await {
        Ok(code) => exit(code),
        Err(error) => stop(1, &error.to_string()),
    }
}

async fn converse(options: &HashMap<String, String>, url: String) -> lapin::Result<i32> {
    let connection = open(&url).await?;
    let control = connection.create_channel().await?;
    let declare = QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
    let queue = control.queue_declare("".into(), declare, FieldTable::default()).await?.name().clone();
    let name = options["client_name"].clone();
    let key = format!("{}.{name}", options["control_key"]);
    for bound in [options["control_key"].clone(), key.clone()] {
        control.queue_bind(queue.clone(), "amq.topic".into(), bound.into(), QueueBindOptions::default(), FieldTable::default()).await?;
    }
    let no_ack = BasicConsumeOptions { no_ack: true, ..Default::default() };
    let mut messages = control.basic_consume(queue, "".into(), no_ack, FieldTable::default()).await?;
    let given = options.iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
    let given = given.map(|(name, word)| (name.clone(), serde_json::from_str(word).unwrap_or_else(|_| json!(word))));
    let client = Arc::new(Client {
        instance: format!("rust-{}-{}", std::process::id(), now()), given: given.collect(), name, key, url, control,
        roles: Mutex::default(), assigned: AtomicU64::new(0), begun: Instant::now(), heard: AtomicU64::new(0),
    });
    println!("READY {}", client.name);
    let limit = (options["control_timeout"].parse().unwrap_or(60.0) * 1000.0) as u64;
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            message = messages.next() => {
                let arrived = now();
                let Some(Ok(message)) = message else { stop(1, "the control connection is lost") };
                client.touch();
                if client.handle(message, arrived).await { return Ok(0) }
            }
            _ = tick.tick() => {
                let heard = client.heard.load(Ordering::Relaxed);
                if heard != 0 && client.elapsed() > heard + limit { stop(3, "nothing heard") }
            }
        }
    }
}

pub async fn open(url: &str) -> lapin::Result<Connection> {
    Connection::connect(url, ConnectionProperties::default()).await
}

impl Client {
    fn elapsed(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64 + 1
    }

    pub fn touch(&self) {
        if self.heard.load(Ordering::Relaxed) != 0 {
            self.heard.store(self.elapsed(), Ordering::Relaxed);
        }
    }

    async fn handle(self: &Arc<Self>, message: Delivery, arrived: i64) -> bool {
        let headers = message.properties.headers().clone().unwrap_or_default();
        let kind = text(&headers, "CONTROL_TYPE").or_else(|| text(&headers, "CONTROL_TOPIC")).unwrap_or_default();
        match kind.as_str() {
            "INVITE" => self.answer_invite(&message, &headers).await,
            "ASSIGN_ROLE" => {
                let correlation = format!("{}.{}", self.instance, self.assigned.fetch_add(1, Ordering::Relaxed));
                let client = self.clone();
                tokio::spawn(async move { client.assign(message, headers, correlation).await });
            }
            "START" | "STATUS_REQUEST" => {
                let role = self.roles.lock().unwrap().get(&assignment(&message)).cloned();
                if let Some(role) = role {
                    let client = self.clone();
                    tokio::spawn(async move { client.play(role, kind == "START", message, headers).await });
                }
            }
            "CLOCK_SYNCH" => {
                let mut reply = fields(&[("CONTROL_TYPE", "CLOCK_SYNCH")]);
                let given = headers.inner().get("T1").cloned().unwrap_or(AMQPValue::Void);
                for (name, value) in [("T1", given), ("T2", AMQPValue::LongLongInt(arrived)), ("T3", AMQPValue::LongLongInt(now()))] {
                    reply.insert(name.into(), value);
                }
                self.reply(&message, reply, None).await;
            }
            "TERMINATE" => return true,
            _ => {} // an unknown type is ignored
        }
        false
    }

    async fn answer_invite(&self, message: &Delivery, headers: &FieldTable) {
        let mut enlist = fields(&[("CONTROL_TYPE", "ENLIST"), ("CLIENT_PRIVATE_CONTROL_KEY", &self.key)]);
        let mut body = None;
        match text(headers, "TEST_NAME") {
            None => {
                body = Some(json!({
                    "protocol": 1, "language": "rust", "runtime": format!("rustc {}", env!("LAB_RUSTC")), "library": "lapin",
                    "library_version": "4.12.3", "platform": std::env::consts::OS, "tests": TESTS, "cannot": {},
                    "field_tags": "tbBsuIilfdDSATFVx",
                }));
            }
            Some(test) if TESTS.contains(&test.as_str()) => {
                enlist.insert("ROLES".into(), AMQPValue::LongString("SENDER,RECEIVER".into()));
            }
            Some(test) => {
                let reason = format!("there is no test {test}");
                return self.reply(message, fields(&[("CONTROL_TYPE", "DECLINE"), ("REASON", &reason)]), None).await;
            }
        }
        self.reply(message, enlist, body).await;
        self.heard.store(self.elapsed(), Ordering::Relaxed);
    }

    async fn assign(self: &Arc<Self>, message: Delivery, headers: FieldTable, correlation: String) {
        let mut given = self.given.clone();
        match serde_json::from_slice(&message.data) {
            Ok(Value::Object(body)) => given.extend(body),
            _ if message.data.is_empty() => {}
            _ => return self.reply(&message, fields(&[("CONTROL_TYPE", "DECLINE"), ("REASON", "the body is no JSON object")]), None).await,
        }
        let parameters = Parameters(given);
        let mut accept = fields(&[("CONTROL_TYPE", "ACCEPT_ROLE")]);
        let opened = if text(&headers, "ROLE").as_deref() == Some("SENDER") {
            accept.insert("CORRELATION_ID".into(), AMQPValue::LongString(correlation.as_str().into()));
            let test = text(&headers, "TEST_NAME").unwrap_or_default();
            let sender = Sender::open(self.clone(), test, parameters, correlation).await;
            sender.map(|sender| Role::Sender(Arc::new(tokio::sync::Mutex::new(sender))))
        } else {
            Receiver::open(self.clone(), parameters).await.map(Role::Receiver)
        };
        match opened {
            Ok(role) => {
                self.roles.lock().unwrap().insert(assignment(&message), role);
                self.reply(&message, accept, None).await;
            }
            Err(told) => self.send(&message, told).await,
        }
    }

    async fn play(&self, role: Role, start: bool, message: Delivery, headers: FieldTable) {
        let last = boolean(&headers, "FINAL").unwrap_or(true);
        let (told, over) = match &role {
            Role::Sender(sender) => {
                let mut sender = sender.lock().await;
                if start {
                    sender.start(&headers).await;
                }
                sender.finish(last).await
            }
            Role::Receiver(receiver) => {
                let count = integer(&headers, "WAIT_COUNT").unwrap_or(0);
                receiver.status(count, integer(&headers, "WAIT_MS").unwrap_or(0), last).await
            }
        };
        if over {
            self.roles.lock().unwrap().remove(&assignment(&message));
        }
        self.send(&message, told).await;
    }

    async fn send(&self, message: &Delivery, told: Report) {
        let mut headers = fields(&[("CONTROL_TYPE", "REPORT")]);
        headers.insert("MESSAGE_COUNT".into(), AMQPValue::LongInt(told.count));
        if let Some(correlation) = told.correlation_id {
            headers.insert("CORRELATION_ID".into(), AMQPValue::LongString(correlation.into()));
        }
        self.reply(message, headers, Some(told.body)).await;
    }

    async fn reply(&self, request: &Delivery, mut headers: FieldTable, body: Option<Value>) {
        headers.insert("CLIENT_NAME".into(), AMQPValue::LongString(self.name.as_str().into()));
        headers.insert("CLIENT_INSTANCE".into(), AMQPValue::LongString(self.instance.as_str().into()));
        let body = body.map(|value| value.to_string()).unwrap_or_default();
        let properties = BasicProperties::default().with_headers(headers).with_correlation_id(assignment(request).into());
        let to = request.properties.reply_to().clone().unwrap_or_default();
        let sent = self.control.basic_publish("".into(), to, BasicPublishOptions::default(), body.as_bytes(), properties).await;
        if let Err(error) = sent {
            eprintln!("rust client: a reply was not sent: {error}");
        }
    }
}

fn assignment(message: &Delivery) -> String {
    message.properties.correlation_id().as_ref().map(|id| id.as_str().to_string()).unwrap_or_default()
}

fn fields(texts: &[(&str, &str)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in texts {
        table.insert((*name).into(), AMQPValue::LongString((*value).into()));
    }
    table
}
