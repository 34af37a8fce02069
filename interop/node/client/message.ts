/** Messages: seeded bodies, envelopes, properties, and header values as tagged JSON. */
import { createHash } from "node:crypto";
import type { Options } from "amqplib";

/** A JSON object whose members the protocol names. */
export type Json = Record<string, any>;
type Tagged = [string, ...any[]];

const origin = BigInt(Math.round(performance.timeOrigin * 1000)) * 1000n;

/** Unix time in nanoseconds. */
export const now = (): bigint => origin + BigInt(Math.round(performance.now() * 1e6));

const digest = (body: Buffer | string): Buffer => createHash("sha256").update(body).digest();
export const sha256 = (body: Buffer): string => digest(body).toString("hex");

/** The body of a message: the first 31 bytes of a hash, over and over. */
export const makeBody = (seed: number, sequence: number, size: number): Buffer =>
  Buffer.alloc(size, digest(`${seed}.${sequence}`).subarray(0, 31));

/** The offset where two bodies part, or -1. */
export function firstDifference(one: Buffer, other: Buffer): number {
  if (one.equals(other)) return -1;
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

/** Carry an envelope as the RabbitMQ binding says; what is absent stays absent. */
export function project(body: Buffer): [Buffer, Options.Publish] {
  const read = JSON.parse(body.toString());
  if (read.meta != null && Object.getPrototypeOf(read.meta) !== Object.prototype) throw new Error("meta is no object");
  const headers: Json = {};
  if (read.meta?.schema_version != null) headers["x-schema-version"] = int32(read.meta.schema_version);
  if (read.attempts != null) headers["x-attempts"] = int32(read.attempts);
  if (read.meta?.lang != null) headers["x-source-lang"] = read.meta.lang;
  const named = typeof read.job === "string" && /[^ \t\n\v\f\r]/.test(read.job);
  return [body, {
    headers, type: (named ? read.job : read.urn) ?? undefined, correlationId: read.trace_id ?? undefined,
    messageId: read.meta?.id ?? undefined, appId: "babelqueue", contentType: "application/json",
    contentEncoding: "utf-8", deliveryMode: 2,
  }];
}

const PROPERTIES = {
  content_type: "contentType", content_encoding: "contentEncoding", delivery_mode: "deliveryMode",
  priority: "priority", correlation_id: "correlationId", reply_to: "replyTo", expiration: "expiration",
  message_id: "messageId", type: "type", user_id: "userId", app_id: "appId",
};

/** The properties that are set; JSON leaves out what is undefined. */
export const propertiesOf = (from: Json): Json =>
  Object.fromEntries(Object.entries(PROPERTIES).map(([name, ours]) => [name, from[ours]]));

export const int32 = (value: number): Json => ({ "!": "int32", value });
export const int64 = (value: bigint): Json => ({ "!": "int64", value });
const number = (kind: string) => (text: string): Json => ({ "!": kind, value: Number(text) });
const long = (kind: string) => (text: string): Json => ({ "!": kind, value: BigInt(text) });

/** By tag, what amqplib writes with it. */
const WRITE: Record<string, (...rest: any[]) => unknown> = {
  t: (text) => text === "true", S: (text) => text, V: () => null, x: (text) => Buffer.from(text, "hex"),
  b: number("int8"), B: number("uint8"), s: number("int16"), u: number("uint16"), I: number("int32"),
  i: number("uint32"), l: long("int64"), T: long("timestamp"), f: number("float"), d: number("double"),
  D: (places, digits) => ({ "!": "decimal", value: { places: Number(places), digits: Number(digits) } }),
  A: (items: Tagged[]) => items.map(([tag, ...rest]) => WRITE[tag]!(...rest)),
  F: (table: Record<string, Tagged>) => untagTable(table),
};

/** The library's header table for a tagged one. */
export const untagTable = (table: Record<string, Tagged>): Json =>
  Object.fromEntries(Object.entries(table).map(([name, [tag, ...rest]]) => [name, WRITE[tag]!(...rest)]));

function tag(value: any): unknown[] {
  if (value === null) return ["V"];
  if (typeof value === "boolean") return ["t", String(value)];
  if (typeof value === "string") return ["S", value];
  if (Buffer.isBuffer(value)) return ["x", value.toString("hex")];
  if (Array.isArray(value)) return ["A", value.map(tag)];
  if (Number.isInteger(value) && !Object.is(value, -0)) return ["*", BigInt(value).toString()];
  if (typeof value === "number") return ["d", Object.is(value, -0) ? "-0" : String(value)];
  if (value["!"] === "timestamp") return ["T", String(value.value)];
  if (value["!"] === "decimal") return ["D", String(value.value.places), String(value.value.digits)];
  return ["F", tagTable(value)];
}

/** The tagged form of a header table, as far as the library tells the types. */
export const tagTable = (table: Json = {}): Json =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name, tag(value)]));
