// The neutral form of an event (docs/reference/events-protocol.md) and the package's own objects.
// undefined and null are unset.

const CORE = [
  "specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time",
];
const OWN = new Set([...CORE, "data", "data_base64", "datacontentencoding", "schemaurl"]);

const isSet = (value) => value !== undefined && value !== null;

export const isJson = (type) =>
  /(^|[^;]*)[/+]json$/.test((type ?? "application/json").split(";")[0].trim().toLowerCase());

function shown(value) {
  if (typeof value === "boolean") return { Boolean: value };
  if (Number.isInteger(value)) return { Integer: value };
  if (typeof value === "string") return { String: value };
  if (ArrayBuffer.isView(value)) return { Binary: Buffer.from(value).toString("base64") };
  if (value instanceof Date) return { Timestamp: value.toISOString() };
  return { [typeof value]: value };
}

export function toNeutral(event) {
  const neutral = {};
  for (const name of CORE) if (isSet(event[name])) neutral[name] = event[name];
  const extensions = Object.entries(event).filter(([name, value]) => !OWN.has(name) && isSet(value));
  if (extensions.length) {
    neutral.extensions = Object.fromEntries(extensions.map(([name, value]) => [name, shown(value)]));
  }
  if (isSet(event.data_base64)) neutral.data = { base64: event.data_base64 };
  else if (event.data !== undefined) {
    const text = typeof event.data === "string" && !isJson(event.datacontenttype);
    neutral.data = text ? { text: event.data } : { json: event.data };
  }
  return neutral;
}

const READ = {
  Binary: (text) => Uint8Array.from(Buffer.from(text, "base64")),
  Timestamp: (text) => text,
};

// Whether a number of the request was rounded on its way in: JavaScript holds no long integers.
export function isRounded(value) {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(isRounded);
}

export function fromNeutral(neutral) {
  const { extensions = {}, data, ...event } = neutral;
  for (const [name, typed] of Object.entries(extensions)) {
    const [[kind, value]] = Object.entries(typed);
    event[name] = READ[kind] ? READ[kind](value) : value;
  }
  if (data) {
    const [[kind, value]] = Object.entries(data);
    event.data = kind === "base64" ? Uint8Array.from(Buffer.from(value, "base64")) : value;
  }
  return event;
}
