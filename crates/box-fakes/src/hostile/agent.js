// An ACP agent that misbehaves. Runs as a module and as a script: it imports nothing by syntax.
const behaviour = "__BEHAVIOUR__";

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const update = (body) => send({ method: "session/update", params: { sessionId: "hostile", update: body } });
const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
const garbage = () => process.stdout.write("\u0000\u001b[31mthis is no protocol {\"id\":\n");
const options = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];
const call = (id) => ({ toolCallId: id, title: "touch " + id, kind: "execute", status: "pending" });
const ask = (id, tool) =>
  send({ id, method: "session/request_permission", params: { sessionId: "hostile", toolCall: call(tool), options } });

let prompt = null;
let answers = 0;
let loaded = false;
const end = () => {
  send({ id: prompt, result: { stopReason: "end_turn" } });
  prompt = null;
};

const echo = (text) =>
  update({ sessionUpdate: "user_message_chunk", content: { type: "text", text } });

const turns = {
  PrintsKeys() {
    say("marmoset key sk-ant-api03-Zq7Lw2Xv9Tb4Nc8Rd1Mf6Hs3Jk5Gp0Ya end");
    end();
  },
  AnswersOutOfOrder() {
    const id = prompt;
    send({ id: 99, result: { stopReason: "end_turn" } });
    send({ id: null, error: { code: -32603, message: "who asked" } });
    say("one ");
    end();
    say("two ");
    send({ id, error: { code: -32603, message: "and yet it failed" } });
    say("three");
  },
  RepeatsLate() {
    say(loaded ? "second" : "first");
    end();
  },
  PrintsGarbageBetween() {
    say("before ");
    garbage();
    say("after");
    end();
  },
  PrintsLongLine() {
    say("here it comes");
    const piece = Buffer.alloc(1 << 20, 120);
    const more = (left) => {
      if (left > 0) process.stdout.write(piece, () => more(left - 1));
    };
    more(100);
  },
  SendsUnknown() {
    update({ sessionUpdate: "hologram", colour: "green" });
    update({ sessionUpdate: "agent_message_chunk", content: { type: "smell", of: "roses" } });
    update({ sessionUpdate: "tool_call", toolCallId: "t1", title: "odd", kind: "juggle", status: "floating" });
    send({ method: "_vendor/notice", params: {} });
    send({ id: "u1", method: "craft/unheardOf", params: {} });
    say("still here");
    // The turn ends once the unknown request was answered.
  },
  ReusesPermissionIds() {
    ask(7, "first");
  },
  DiesWithOpenPermission() {
    ask(7, "first");
    process.stdout.write("", () => process.exit(4));
  },
  Floods() {
    for (let i = 0; i < 10000; i += 1) say("x");
    end();
  },
  NeverEnds() {
    say("I will not end");
  },
  async PrintsSecrets() {
    const fs = await import("node:fs");
    say(JSON.stringify(process.env) + "\n");
    for (const path of ["/proc/1/environ", "/proc/self/environ", "/proc/self/cmdline", "/proc/1/cmdline"]) {
      try {
        say(path + ": " + fs.readFileSync(path, "utf8") + "\n");
      } catch (error) {
        say(path + ": " + error.code + "\n");
      }
    }
    end();
  },
};

const answered = (message) => {
  answers += 1;
  if (behaviour === "ReusesPermissionIds") {
    say("answer " + answers + ": " + JSON.stringify(message.result ?? message.error) + "\n");
    if (answers === 1) ask(7, "second");
    else end();
  }
  if (behaviour === "SendsUnknown") {
    say(", told " + JSON.stringify(message.error?.code));
    end();
  }
};

const methods = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true } }),
  "session/new": () => ({
    sessionId: "hostile",
    modes: { currentModeId: "default", availableModes: [{ id: "default", name: "Default" }] },
  }),
  "session/load": () => {
    loaded = true;
    return behaviour === "RepeatsLate" ? methods["session/new"]() : null;
  },
  "session/set_mode": () => ({}),
};

const take = (message) => {
  if (message.method === undefined) return answered(message);
  if (message.method === "session/prompt") {
    prompt = message.id;
    return (turns[behaviour] ?? end)();
  }
  if (message.method === "session/cancel") {
    if (behaviour !== "NeverEnds" && prompt !== null) {
      send({ id: prompt, result: { stopReason: "cancelled" } });
      prompt = null;
    }
    return undefined;
  }
  if (message.id === undefined) return undefined;
  const method = methods[message.method];
  if (method) {
    send({ id: message.id, result: method() });
    if (behaviour === "RepeatsLate" && message.method === "session/load") {
      echo("misbehave");
      say("first");
      update({ sessionUpdate: "tool_call", ...call("t1") });
    }
    return undefined;
  }
  return send({ id: message.id, error: { code: -32601, message: "no such method" } });
};

if (behaviour === "DiesAtStart") {
  process.stderr.write("hostile agent: cannot find my own head\n");
  process.exit(3);
}
if (behaviour === "PrintsGarbage") {
  for (let i = 0; i < 3; i += 1) garbage();
}
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (piece) => {
  const lines = (rest + piece).split("\n");
  rest = lines.pop();
  if (behaviour === "PrintsGarbage") return lines.forEach(garbage);
  return lines.filter((line) => line !== "").forEach((line) => take(JSON.parse(line)));
});
process.stdin.on("end", () => process.exit(0));
