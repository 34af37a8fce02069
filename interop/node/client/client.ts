/**
 * The Node.js client of the lab (docs/reference/lab-protocol.md), on npm's amqplib.
 *
 * It does what it is told and reports what it did; it never judges. amqplib has no transactions and
 * no `immediate`; those parameters are declined. It reads int64 headers as doubles, so stamps are
 * good to a quarter of a microsecond.
 */
import { randomBytes } from "node:crypto";
import type { Channel, ConsumeMessage } from "amqplib";
import { now, type Json } from "./message.js";
import { Receiver } from "./receiver.js";
import { DEFAULTS, int32, int64, open, options, silence, touch, type Parameters, type Report, type Role } from "./role.js";
import { Sender } from "./sender.js";

const TESTS = ["TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize", "TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable"];
const CANNOT: Record<string, string> = {
  immediate: "amqplib writes the bit as false always",
  transactional: "amqplib has no tx methods",
  "ack_mode=tx": "amqplib has no tx methods",
};
const OF_SENDER = ["immediate", "transactional"];

const OURS = [...Object.keys(options), "start_timeout"];
const given: Json = {};
const instance = `node-${randomBytes(8).toString("hex")}`;
const roles = new Map<string, Role>();
let control: Channel;
let assigned = 0;

function usage(text: string): never {
  console.error(`node client: ${text}`);
  process.exit(2);
}

function readArguments(words: string[]): void {
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const at = word.indexOf("=");
    if (["-b", "-p", "-v"].includes(word)) options[word] = words[++i] ?? usage(`${word} needs a value`);
    else if (at > 0 && !word.startsWith("-")) options[word.slice(0, at)] = word.slice(at + 1);
    else usage(`${word} is neither -b, -p, -v nor name=value`);
  }
  for (const [name, text] of Object.entries(options)) {
    if (OURS.includes(name)) continue;
    try { given[name] = JSON.parse(text); } catch { given[name] = text; } // a word that is no JSON is a text
  }
  if (!(Number(options.control_timeout) > 0)) usage("control_timeout is a number of seconds");
}

function reply(request: ConsumeMessage, headers: Json, body?: Json): void {
  const text = body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body));
  control.publish("", request.properties.replyTo, text, {
    headers: { ...headers, CLIENT_NAME: options.client_name, CLIENT_INSTANCE: instance },
    correlationId: request.properties.correlationId,
  });
}

function send(request: ConsumeMessage, told: Report): void {
  const headers: Json = { CONTROL_TYPE: "REPORT", MESSAGE_COUNT: int32(told.count) };
  if (told.correlationId) headers.CORRELATION_ID = told.correlationId;
  reply(request, headers, told.body);
}

/** Why a role cannot be played with these parameters, or an empty text. */
function refusal(p: Json, sender: boolean): string {
  for (const [name, reason] of Object.entries(CANNOT)) {
    const [key, value] = name.split("=") as [string, string | undefined];
    if (OF_SENDER.includes(name) === sender && (value === undefined ? p[key] === true : p[key] === value)) return `${name}: ${reason}`;
  }
  return "";
}

const privateKey = (): string => `${options.control_key}.${options.client_name}`;

function answerInvite(request: ConsumeMessage, headers: Json): void {
  const enlist: Json = { CONTROL_TYPE: "ENLIST", CLIENT_PRIVATE_CONTROL_KEY: privateKey() };
  const test = headers.TEST_NAME;
  if (test === undefined) {
    reply(request, enlist, {
      protocol: 1, language: "node", runtime: `Node.js ${process.version}`, library: "amqplib", library_version: "2.3.1",
      platform: process.platform, tests: TESTS, cannot: CANNOT, field_tags: "tbBsuIilfdDSATFVx",
    });
  } else {
    const p = { ...given, ...readBody(request) };
    const sender = refusal(p, true), receiver = refusal(p, false);
    if (!TESTS.includes(test)) return reply(request, { CONTROL_TYPE: "DECLINE", REASON: `there is no test ${test}` });
    if (sender && receiver) return reply(request, { CONTROL_TYPE: "DECLINE", REASON: `${sender}; ${receiver}` });
    enlist.ROLES = sender ? "RECEIVER" : receiver ? "SENDER" : "SENDER,RECEIVER";
    if (sender || receiver) enlist.REASON = sender || receiver;
    reply(request, enlist);
  }
  silence.heard = performance.now();
}

const readBody = (message: ConsumeMessage): Json => (message.content.length ? JSON.parse(message.content.toString()) : {});

async function assign(request: ConsumeMessage, headers: Json, correlationId: string): Promise<void> {
  const sender = headers.ROLE === "SENDER";
  const p = { ...DEFAULTS, ...given, ...readBody(request) } as Parameters;
  const reason = refusal(p, sender);
  if (reason) return reply(request, { CONTROL_TYPE: "DECLINE", REASON: reason });
  const role = sender ? new Sender(headers.TEST_NAME, p, correlationId) : new Receiver(p);
  try {
    await role.open();
  } catch (error) {
    role.fail(error);
    const told = role.report();
    await role.close();
    return send(request, told);
  }
  roles.set(request.properties.correlationId, role);
  reply(request, sender ? { CONTROL_TYPE: "ACCEPT_ROLE", CORRELATION_ID: correlationId } : { CONTROL_TYPE: "ACCEPT_ROLE" });
}

async function play(role: Role, kind: string, request: ConsumeMessage, headers: Json): Promise<void> {
  const told = kind === "START" ? await role.start(headers) : await role.status(headers);
  if (role.over) roles.delete(request.properties.correlationId);
  send(request, told);
}

function handle(message: ConsumeMessage, finish: () => void): void {
  const arrived = now();
  touch();
  const headers: Json = message.properties.headers ?? {};
  const kind = headers.CONTROL_TYPE ?? headers.CONTROL_TOPIC;
  if (kind === "INVITE") answerInvite(message, headers);
  else if (kind === "ASSIGN_ROLE") void assign(message, headers, `${instance}.${++assigned}`);
  else if (kind === "START" || kind === "STATUS_REQUEST") {
    const role = roles.get(message.properties.correlationId);
    if (role) void play(role, kind, message, headers);
  } else if (kind === "CLOCK_SYNCH") {
    reply(message, { CONTROL_TYPE: kind, T1: int64(BigInt(headers.T1)), T2: int64(arrived), T3: int64(now()) });
  } else if (kind === "TERMINATE") finish();
}

async function main(): Promise<void> {
  readArguments(process.argv.slice(2));
  const connection = await open();
  const lost = (): never => { console.error("node client: the control connection is lost"); process.exit(1); };
  connection.on("error", () => undefined).on("close", lost); // the close that follows tells
  control = await connection.createChannel();
  const { queue } = await control.assertQueue("", { exclusive: true, autoDelete: true, durable: false });
  for (const key of [options.control_key!, privateKey()]) await control.bindQueue(queue, "amq.topic", key);
  const end = (): void => { connection.removeListener("close", lost); void connection.close().finally(() => process.exit(0)); };
  await control.consume(queue, (message) => message && handle(message, end), { noAck: true });
  console.log(`READY ${options.client_name}`);
  setInterval(() => {
    if (!silence.heard || performance.now() - silence.heard < Number(options.control_timeout) * 1000) return;
    console.error("node client: nothing heard");
    process.exit(3);
  }, 100);
}

main().catch((error: unknown) => { console.error(`node client: ${String(error)}`); process.exit(1); });
