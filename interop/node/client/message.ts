/** What the roles share: seeded bodies, runs of numbers, digests, the clock and tagged values. */
import { createHash, type Hash } from "node:crypto";

/** A JSON object whose members the protocol names; they are looked at one by one. */
export type Json = Record<string, any>;
export type Tagged = Record<string, [string, ...any[]]>;

const origin = BigInt(Math.round(performance.timeOrigin * 1000)) * 1000n;

/** Unix time in nanoseconds. */
export const now = (): bigint => origin + BigInt(Math.round(performance.now() * 1e6));

export const sha256 = (body: Buffer): string => createHash("sha256").update(body).digest("hex");

/** n bytes of message i: the first 31 bytes of a hash, over and over. */
export const bodyOf = (seed: number, i: number, n: number): Buffer =>
  Buffer.alloc(n, createHash("sha256").update(`${seed}.${i}`).digest().subarray(0, 31));

/** The offset where two bodies part, or -1. */
export function firstDifference(one: Buffer, other: Buffer): number {
  if (one.equals(other)) return -1;
  const shorter = Math.min(one.length, other.length);
  for (let at = 0; at < shorter; at++) if (one[at] !== other[at]) return at;
  return shorter;
}

/** Numbers as they happened, ascending neighbours together: 0-3,5,4,6-49. */
export function runs(numbers: number[]): string {
  const out: string[] = [];
  for (let i = 0, j = 0; i < numbers.length; i = ++j) {
    while (numbers[j + 1] === numbers[j]! + 1) j++;
    out.push(j > i ? `${numbers[i]}-${numbers[j]}` : String(numbers[i]));
  }
  return out.join(",");
}

/** The digest of a list of bodies; empty where only counts are asked for. */
export class Digest {
  private sum?: Hash;
  constructor(check: string) { if (check === "hash") this.sum = createHash("sha256"); }
  add(body: Buffer): void { this.sum?.update(createHash("sha256").update(body).digest()); }
  text(): string { return this.sum?.copy().digest("hex") ?? ""; }
}

const INTEGERS: Record<string, string> = { b: "int8", B: "uint8", s: "int16", u: "uint16", I: "int32", i: "uint32", l: "int64", T: "timestamp" };

const bits = (text: string, size: number): Buffer => Buffer.from(BigInt(text).toString(16).padStart(size * 2, "0"), "hex");

function untag([tag, value, more]: [string, ...any[]]): unknown {
  const integer = INTEGERS[tag];
  if (integer) return { "!": integer, value: tag === "l" || tag === "T" ? BigInt(value) : Number(value) };
  switch (tag) {
    case "t": case "S": return value;
    case "V": return null;
    case "x": return Buffer.from(value, "hex");
    case "A": return value.map(untag);
    case "F": return untagTable(value);
    case "f": return { "!": "float", value: bits(value, 4).readFloatBE() };
    case "d": return { "!": "double", value: bits(value, 8).readDoubleBE() };
    case "D": return { "!": "decimal", value: { places: Number(value), digits: Number(more) } };
    default: throw new TypeError(`amqplib has no header value of type ${tag}`);
  }
}

/** The library's header table for a tagged one. */
export const untagTable = (table: Tagged): Json => Object.fromEntries(Object.entries(table).map(([name, value]) => [name, untag(value)]));

function tag(value: any): unknown[] {
  if (value === null) return ["V"];
  if (typeof value === "boolean") return ["t", value];
  if (typeof value === "string") return ["S", value];
  if (Buffer.isBuffer(value)) return ["x", value.toString("hex")];
  if (Array.isArray(value)) return ["A", value.map(tag)];
  if (typeof value === "number") return Number.isInteger(value) && !Object.is(value, -0) ? ["*", BigInt(value).toString()] : ["d", double(value)];
  if (value["!"] === "timestamp") return ["T", BigInt(value.value).toString()];
  if (value["!"] === "decimal") return ["D", String(value.value.places), String(value.value.digits)];
  return ["F", tagTable(value)];
}

function double(value: number): string {
  const raw = Buffer.alloc(8);
  raw.writeDoubleBE(value);
  return `0x${raw.toString("hex")}`;
}

/** The tagged form of a header table, as far as the library tells the types. */
export const tagTable = (table: Json): Json => Object.fromEntries(Object.entries(table).map(([name, value]) => [name, tag(value)]));
