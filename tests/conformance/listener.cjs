// An MCP client of the official TypeScript SDKs that follows resources until its input ends.
// node listener.cjs sdk|client REVISION '{"command": …, "args": […]}' | '{"url": …, "token": …}' URI…
// Prints a line of JSON when it listens, and one for each update.
const [, , library, revision, where, ...uris] = process.argv;
const isModern = revision === "2026-07-28";

function load() {
  if (library === "client") {
    const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
    const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
    return { Client, StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
  const http = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { ResourceUpdatedNotificationSchema } = require("@modelcontextprotocol/sdk/types.js");
  return { Client, ...http, StdioClientTransport, updated: ResourceUpdatedNotificationSchema };
}

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

async function main() {
  const { Client, StdioClientTransport, StreamableHTTPClientTransport, updated } = load();
  const { url, token, ...process_ } = JSON.parse(where);
  const headers = { Authorization: `Bearer ${token}` };
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport({ ...process_, env: process.env });
  const mode = isModern ? { pin: revision } : "legacy";
  const client = new Client({ name: "Listener", version: "1" }, { versionNegotiation: { mode } });
  client.setNotificationHandler(updated ?? "notifications/resources/updated", (told) =>
    say({ updated: told.params.uri }),
  );
  await client.connect(transport);
  if (isModern) {
    const heard = await client.listen({ resourceSubscriptions: uris });
    say({ follows: heard.honoredFilter.resourceSubscriptions });
    heard.closed.then((how) => say({ closed: how }));
  } else {
    for (const uri of uris) await client.subscribeResource({ uri });
    say({ follows: uris });
  }
  process.stdin.resume().on("end", () => client.close().then(() => process.exit(0)));
}

main().catch((error) => {
  say({ failed: String(error.message) });
  process.exit(1);
});
