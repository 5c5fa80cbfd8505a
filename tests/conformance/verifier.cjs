// Verifies an event as npm's standardwebhooks does: {secret, headers, body} as JSON on standard input.
const { Webhook } = require("standardwebhooks");
const { secret, headers, body } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
try {
  console.log(JSON.stringify({ verified: new Webhook(secret).verify(body, headers) }));
} catch (error) {
  console.log(JSON.stringify({ refused: error.constructor.name }));
}
