// The npm package `cloudevents` as a subject: JSON events and batches, by its HTTP binding, which
// is where it has them. `toEvent` does not validate a single event, so `validate` is asked too.
// A rejection is a ValidationError, or `validate` answering false; anything else thrown is an error.

import { createRequire } from "node:module";
import { CloudEvent, HTTP, ValidationError } from "cloudevents";
import { fromNeutral, isRounded, toNeutral } from "./neutral.mjs";

class Unsupported extends Error {}

const version = createRequire(import.meta.url)("cloudevents/package.json").version;
const identity = {
  protocol: 1,
  name: "cloudevents-node",
  version,
  language: "javascript",
  library: "JSON, ajv",
  operations: ["ce_read", "ce_write"],
};

function check(given) {
  if (given.format !== "json") throw new Unsupported(`cloudevents has no ${given.format} format`);
  if (given.extensions || given.constraints) {
    throw new Unsupported("cloudevents cannot declare the types of extensions");
  }
}

function read(given) {
  check(given);
  const batch = given.kind === "batch";
  const type = batch ? "application/cloudevents-batch+json" : "application/cloudevents+json";
  const body = Buffer.from(given.body_base64, "base64").toString();
  const found = HTTP.toEvent({ headers: { "content-type": type }, body });
  if (batch) return { events: found.map(toNeutral) };
  if (!found.validate()) return { rejected: "validate() is false" };
  return { event: toNeutral(found) };
}

function write(given) {
  check(given);
  if (given.events) throw new Unsupported("cloudevents reads batches and does not write them");
  if (isRounded(given.event)) throw new Unsupported("JavaScript has no number for this integer");
  const message = HTTP.structured(new CloudEvent(fromNeutral(given.event)));
  return { bytes_base64: Buffer.from(message.body).toString("base64") };
}

const operations = { ce_read: read, ce_write: write };

function answer({ id, operation, given }) {
  if (!Object.hasOwn(operations, operation)) {
    return { id, unsupported: `no operation ${operation}` };
  }
  try {
    return { id, result: operations[operation](given) };
  } catch (error) {
    if (error instanceof Unsupported) return { id, unsupported: error.message };
    if (error instanceof ValidationError) {
      return { id, result: { rejected: `ValidationError: ${error.message}` } };
    }
    return { id, error: `${error?.constructor?.name}: ${error?.message}` };
  }
}

let rest = [];
for await (const chunk of process.stdin) {
  let from = 0;
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
    const request = JSON.parse(Buffer.concat([...rest, chunk.subarray(from, end)]).toString());
    rest = [];
    from = end + 1;
    if (request.op === "stop") process.exit(0);
    const reply = request.op === "run" ? answer(request) : identity;
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
  rest.push(chunk.subarray(from));
}
