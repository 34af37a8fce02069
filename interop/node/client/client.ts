/**
 * The Node.js client of the lab (docs/reference/lab-protocol.md), on npm's amqplib.
 *
 * It does what it is told and reports what it did; it never judges. This file is the control
 * conversation, role.ts plays the roles, message.ts makes and reads messages. amqplib reads int64
 * headers as doubles, so stamps are good to a quarter of a microsecond.
 */
import amqp, { type Channel, type ChannelModel, type ConsumeMessage } from "amqplib";
import { int32, int64, now, type Json } from "./message.js";
import { Receiver, Sender, type Role } from "./role.js";

const pairs = process.argv.slice(2).map((word) => word.split(/=(.*)/s));
const given: Record<string, string> = Object.fromEntries(pairs);
const held = new Map<string, { role: Role; work: Promise<void> }>();
let control: Channel;
let heard = 0;

function stop(code: number, why: unknown): never {
  console.error(`node client: ${String(why)}`);
  process.exit(code);
}

const touch = (): void => { heard = performance.now(); };
const open = (): Promise<ChannelModel> => {
  const [user, password] = /\/\/(.*):(.*)@/.exec(given.url!)!.slice(1).map(decodeURIComponent);
  return amqp.connect(given.url!, { timeout: 50_000, credentials: amqp.credentials.plain(user!, password!) });
};

function reply(request: ConsumeMessage, kind: string, fields: Json, body = ""): void {
  const headers = { ...fields, CONTROL_TYPE: kind, CLIENT_NAME: given.client_name, CLIENT_INSTANCE: given.instance };
  const { replyTo, correlationId } = request.properties;
  control.publish("", replyTo, Buffer.from(body), { headers, correlationId });
}

function answerInvite(request: ConsumeMessage, test?: string): void {
  if (test === undefined || given.tests!.split(" ").includes(test)) {
    reply(request, "ENLIST", { CLIENT_PRIVATE_CONTROL_KEY: given.private_key }, given.capabilities);
  } else reply(request, "DECLINE", { REASON: `there is no test ${test}` });
}

function report(request: ConsumeMessage, role: Role): void {
  const fields = { MESSAGE_COUNT: int32(role.count), CORRELATION_ID: role.correlation };
  reply(request, "REPORT", fields, JSON.stringify(role.report()));
}

async function end(request: ConsumeMessage, role: Role): Promise<void> {
  held.delete(request.properties.correlationId);
  for (const one of role.connections) await one.close().catch(() => undefined); // perhaps closed already
  report(request, role);
}

/** Accept a role when it is ready, or report why not. */
async function begin(request: ConsumeMessage, role: Role): Promise<void> {
  await role.attempt(() => role.begin(request.content.toString()));
  if (role.failed) return end(request, role);
  reply(request, "ACCEPT_ROLE", { CORRELATION_ID: role.correlation });
}

async function play(request: ConsumeMessage, role: Role, fields: Json): Promise<void> {
  await role.attempt(() => (fields.CONTROL_TYPE === "START" ? role.start(fields) : role.status(fields)));
  if (fields.FINAL) await end(request, role);
  else report(request, role);
}

function handle(message: ConsumeMessage): void {
  const arrived = now();
  touch();
  const fields: Json = message.properties.headers ?? {};
  const kind = fields.CONTROL_TYPE ?? fields.CONTROL_TOPIC;
  const assignment: string = message.properties.correlationId;
  if (kind === "INVITE") answerInvite(message, fields.TEST_NAME);
  else if (kind === "CLOCK_SYNCH") {
    reply(message, kind, { T1: int64(BigInt(fields.T1)), T2: int64(arrived), T3: int64(now()) });
  } else if (kind === "ASSIGN_ROLE") {
    const make = fields.ROLE === "SENDER" ? Sender : Receiver;
    const role = new make({ name: given.client_name!, open, touch }, `${given.instance}.${assignment}`);
    held.set(assignment, { role, work: begin(message, role) });
  } else if (kind === "START" || kind === "STATUS_REQUEST") {
    const one = held.get(assignment);
    if (one) one.work = one.work.then(() => play(message, one.role, fields));
  } else if (kind === "TERMINATE") process.exit(0);
}

async function main(): Promise<void> {
  const connection = await open();
  connection.on("error", () => undefined).on("close", () => stop(1, "the control connection is lost"));
  control = await connection.createChannel();
  const { queue } = await control.assertQueue("", { exclusive: true, autoDelete: true, durable: false });
  for (const one of [given.control_key!, given.private_key!]) await control.bindQueue(queue, "amq.topic", one);
  await control.consume(queue, (message) => message && handle(message), { noAck: true });
  console.log(`READY ${given.client_name}`);
  setInterval(() => {
    if (heard && performance.now() - heard > Number(given.control_timeout) * 1000) stop(3, "nothing heard");
  }, 100);
}

main().catch((error: unknown) => stop(1, error));
