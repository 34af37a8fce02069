//! The Rust client of the lab (docs/reference/lab-protocol.md), on the crate lapin.
//!
//! It does what it is told and reports what it did; it never judges. This file is the control
//! conversation, `role` plays the roles, `message` makes and reads messages. Header fields of control
//! messages are handled in their tagged form: `["S", "INVITE"]`.

mod message;
mod role;

use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, QueueDeclareOptions};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use message::{now, tag_table, untag_table, Result};
use role::{Parts, Role};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::process::exit;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

const TESTS: &str = "TC1_DummyRun TC2_BasicP2P TC3_BasicPubSub TC4_P2PMessageSize TC5_PubSubMessageSize \
    Circuit Envelope FieldTable";

pub struct Client {
    pub given: HashMap<String, String>,
    instance: String,
    control: Channel,
    pub heard: AtomicI64, // when anything was heard last; 0 before that
}

type Request = (Delivery, Value);
type Held = HashMap<String, UnboundedSender<Request>>;

fn stop(code: i32, why: &str) -> ! {
    eprintln!("rust client: {why}");
    exit(code)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let words = std::env::args().skip(1);
    let pairs = words.filter_map(|word| word.split_once('=').map(|(name, value)| (name.into(), value.into())));
    if let Err(error) = converse(pairs.collect()).await {
        stop(1, &error.to_string());
    }
}

fn escape(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

pub async fn open(given: &HashMap<String, String>) -> Result<Connection> {
    let [name, password, vhost] = ["username", "password", "vhost"].map(|name| escape(&given[name]));
    let place = format!("{}:{}/{vhost}", given["host"], given["port"]);
    let url = format!("amqp://{name}:{password}@{place}?heartbeat=30&connection_timeout=50000");
    Ok(Connection::connect(&url, ConnectionProperties::default()).await?)
}

async fn converse(given: HashMap<String, String>) -> Result<()> {
    let limit = (given["control_timeout"].parse::<f64>()? * 1e9) as i64;
    let connection = open(&given).await?;
    let control = connection.create_channel().await?;
    let declare = QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
    let queue = control.queue_declare("".into(), declare, Default::default()).await?.name().clone();
    let instance = format!("rust-{}-{}", std::process::id(), now());
    let client = Arc::new(Client { given, instance, control, heard: AtomicI64::new(0) });
    let control = &client.control;
    for key in [client.given["control_key"].clone(), client.key()] {
        let exchange = "amq.topic".into();
        control.queue_bind(queue.clone(), exchange, key.into(), Default::default(), Default::default()).await?;
    }
    let no_ack = BasicConsumeOptions { no_ack: true, ..Default::default() };
    let mut messages = control.basic_consume(queue, "".into(), no_ack, Default::default()).await?;
    println!("READY {}", client.given["client_name"]);
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let mut held = Held::new();
    loop {
        tokio::select! {
            message = messages.next() => {
                let message = message.ok_or("the control connection is lost")??;
                client.heard.store(now(), Ordering::Relaxed);
                client.handle(message, &mut held).await;
            }
            _ = tick.tick() => {
                let heard = client.heard.load(Ordering::Relaxed);
                if heard != 0 && now() > heard + limit { stop(3, "nothing heard") }
            }
        }
    }
}

impl Client {
    fn key(&self) -> String {
        format!("{}.{}", self.given["control_key"], self.given["client_name"])
    }

    async fn handle(self: &Arc<Self>, message: Delivery, held: &mut Held) {
        let arrived = now();
        let mut fields = tag_table(&message.properties);
        if fields["CONTROL_TYPE"].is_null() {
            fields["CONTROL_TYPE"] = fields["CONTROL_TOPIC"].take();
        }
        let (id, last) = (assignment(&message), fields["FINAL"][1] == true);
        match fields["CONTROL_TYPE"][1].as_str().unwrap_or_default() {
            "INVITE" => self.answer_invite(&message, fields["TEST_NAME"][1].as_str()).await,
            "CLOCK_SYNCH" => {
                let stamps = [arrived, now()].map(|stamp| json!(["l", stamp.to_string()]));
                let reply = json!({"T1": fields["T1"], "T2": stamps[0], "T3": stamps[1]});
                self.reply(&message, "CLOCK_SYNCH", reply, None).await;
            }
            "ASSIGN_ROLE" => {
                let (sender, asked) = unbounded_channel();
                let role = Role::new(self.clone(), &message.data);
                sender.send((message, fields)).unwrap_or_else(|_| stop(1, "nobody plays the role"));
                held.insert(id, sender);
                tokio::spawn(self.clone().play(role, asked));
            }
            "START" | "STATUS_REQUEST" => {
                let role = if last { held.remove(&id) } else { held.get(&id).cloned() };
                role.map(|role| role.send((message, fields)));
            }
            "TERMINATE" => exit(0),
            _ => {} // an unknown type is ignored
        }
    }

    async fn answer_invite(&self, message: &Delivery, test: Option<&str>) {
        if let Some(test) = test.filter(|test| TESTS.split(' ').all(|known| known != *test)) {
            let reason = json!({"REASON": ["S", format!("there is no test {test}")]});
            return self.reply(message, "DECLINE", reason, None).await;
        }
        let given: HashMap<_, _> = self.given.iter().filter(|(name, _)| *name != "password").collect();
        let about = json!({
            "protocol": 2, "language": "rust", "runtime": format!("rustc {}", env!("LAB_RUSTC")),
            "library": "lapin", "library_version": "4.12.3", "platform": std::env::consts::OS,
            "tests": TESTS.split(' ').collect::<Vec<_>>(), "cannot": {},
            "field_tags": "tbBsuIilfdDSATFVx", "given": given,
        });
        let key = json!({"CLIENT_PRIVATE_CONTROL_KEY": ["S", self.key()]});
        self.reply(message, "ENLIST", key, Some(about)).await;
    }

    /// Do what a role is asked, one after the other: accept it when it is ready, then report.
    async fn play(self: Arc<Self>, role: Role, mut asked: UnboundedReceiver<Request>) {
        let (role, mut parts, mut last) = (Arc::new(role), Parts::default(), false);
        while !last {
            let Some((request, fields)) = asked.recv().await else { return };
            last = fields["FINAL"][1] == true;
            let id = json!({"CORRELATION_ID": ["S", role.correlation]});
            let kind = fields["CONTROL_TYPE"][1].as_str().unwrap_or_default();
            let done = match kind {
                "ASSIGN_ROLE" => role.open(&mut parts, fields["ROLE"][1] == "SENDER").await,
                "START" => role.start(&parts, &fields).await,
                _ => role.status(&mut parts, &fields, last).await,
            };
            role.keep(done).await;
            if kind == "ASSIGN_ROLE" && !role.failed() {
                self.reply(&request, "ACCEPT_ROLE", id, None).await;
                continue;
            }
            last |= kind == "ASSIGN_ROLE";
            for connection in parts.connections.iter().filter(|_| last) {
                let _ = connection.close(200, "done".into()).await; // the broker may have closed it already
            }
            let (count, report) = role.report();
            let fields = json!({"CORRELATION_ID": id["CORRELATION_ID"], "MESSAGE_COUNT": ["I", count.to_string()]});
            self.reply(&request, "REPORT", fields, Some(report)).await;
        }
    }

    async fn reply(&self, request: &Delivery, kind: &str, mut fields: Value, body: Option<Value>) {
        fields["CONTROL_TYPE"] = json!(["S", kind]);
        fields["CLIENT_NAME"] = json!(["S", self.given["client_name"]]);
        fields["CLIENT_INSTANCE"] = json!(["S", self.instance]);
        let properties = BasicProperties::default()
            .with_headers(untag_table(&fields))
            .with_correlation_id(assignment(request).into());
        let to = request.properties.reply_to().clone().unwrap_or_default();
        let body = body.map(|value| value.to_string()).unwrap_or_default();
        let sent = self.control.basic_publish("".into(), to, Default::default(), body.as_bytes(), properties);
        if let Err(error) = sent.await {
            stop(1, &format!("a reply was not sent: {error}"));
        }
    }
}

fn assignment(message: &Delivery) -> String {
    message.properties.correlation_id().as_ref().map(|id| id.as_str().to_string()).unwrap_or_default()
}
