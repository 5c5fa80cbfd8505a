// Reads with openapi-fetch, typed by openapi-typescript; prints what came as JSON.
// Usage: node reader.mts ORIGIN TOKEN SINCE, beside the types in schema.d.ts.

import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

declare const process: { argv: string[] };
const [baseUrl, token, since] = process.argv.slice(2);
const client = createClient<paths>({
  baseUrl,
  headers: { Authorization: `Bearer ${token}` },
  querySerializer: { object: { style: "form", explode: true } },
});

function received<T>(answer: { data?: T; response: Response }): T {
  if (answer.data === undefined) throw new Error(`answered with ${answer.response.status}`);
  return answer.data;
}

const streams = received(await client.GET("/v1/streams"));
const page = received(
  await client.GET("/v1/streams/{stream}/records", {
    params: {
      path: { stream: "messages" },
      query: { filter: { "filter[sent_at][gte]": since }, limit: 100 },
    },
  }),
);
const last = page.data[page.data.length - 1].id;
const record = received(
  await client.GET("/v1/streams/{stream}/records/{record_key}", {
    params: { path: { stream: "messages", record_key: last } },
  }),
);
const refused = await client.GET("/v1/streams/{stream}/records", {
  params: { path: { stream: "nothing" } },
});
const told = {
  streams: streams.data.map((stream) => stream.name),
  ids: page.data.map((each) => each.id),
  record: { id: record.id, subject: record.data.subject },
  refusal: { status: refused.response.status, code: refused.error?.error.code },
};
console.log(JSON.stringify(told));
