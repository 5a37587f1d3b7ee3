// A WebSocket over HTTP/2 (RFC 8441), as Node's own client opens it.
const http2 = require("node:http2");
const session = http2.connect("https://cred.test", {
  lookup: (_, options, done) =>
    options.all ? done(null, [{ address: process.env.ADDRESS, family: 4 }]) : done(null, process.env.ADDRESS, 4),
});
session.on("remoteSettings", (settings) => {
  if (!settings.enableConnectProtocol) throw new Error("no extended CONNECT");
  const stream = session.request({
    ":method": "CONNECT",
    ":protocol": "websocket",
    ":path": "/ws",
    "sec-websocket-version": "13",
    "sec-websocket-protocol": "chat",
    authorization: process.env.BEARER,
  });
  stream.on("response", (headers) => {
    stream.once("data", (data) => {
      console.log(headers[":status"], headers["sec-websocket-protocol"], data.subarray(2).toString());
      session.destroy();
    });
    // A text frame, as a host sends it.
    stream.write(Buffer.from("\x81\x04ping", "latin1"));
  });
});
