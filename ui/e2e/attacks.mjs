// A hostile page in the browser of somebody who is signed in: it reads nothing, changes nothing, opens no socket and
// shows no frame of ours. Beside each attack the same act from our own page, which must work.
import { createServer } from "node:http";
import { DESKTOP, box, check, device, fail, pair, run, watched } from "./page.mjs";

const [link] = process.argv.slice(2);

await run(async () => {
  const context = await device(DESKTOP);
  const own = await watched(context);
  await pair(own, link);
  const home = new URL(own.url());
  const before = JSON.parse(await box("list", "--json"));

  const server = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>evil</title>"));
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const port = server.address().port;
  const answers = [];
  context.on("response", (answer) => {
    const url = new URL(answer.url());
    if (url.port !== home.port || answer.frame().page() === own) return;
    answers.push({ path: url.pathname, method: answer.request().method(), status: answer.status(), host: url.host });
  });
  // What the browser keeps from the hostile page it keeps from its driver too: the host says how many it refused.
  const refused = () =>
    own.evaluate(async () => {
      const answer = await fetch("/metrics", { headers: { "x-box-proof": localStorage.getItem("boxes:proof") } });
      return Number(/box_page_refused_total (\d+)/.exec(await answer.text())[1]);
    });

  // Every endpoint, as the host lists them; from our own page it is there.
  const paths = await own.evaluate(async () => {
    const proof = localStorage.getItem("boxes:proof");
    const answer = await fetch("/api/openapi.json", { headers: { "x-box-proof": proof } });
    const document = await answer.json();
    return Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => [method.toUpperCase(), path.replaceAll(/[{}]/g, "")]));
  });
  check(paths.length > 40, `only ${paths.length} endpoints`);

  const refusedBefore = await refused();
  for (const name of ["evil.example", "localhost"]) {
    const page = await context.newPage();
    await page.goto(`http://${name}:${port}/`);
    const read = await page.evaluate(
      async ([all, at]) => {
        const got = [];
        for (const [method, path] of all) {
          for (const mode of ["cors", "no-cors"]) {
            const simple = method === "GET" || method === "POST";
            if (mode === "no-cors" && !simple) continue;
            const body = method === "POST" ? "{}" : undefined;
            try {
              const answer = await fetch(at + path, { method, mode, credentials: "include", body });
              const text = await answer.text();
              if (text !== "") got.push(`${method} ${path}: ${text.slice(0, 80)}`);
            } catch {
              // Refused by the browser: what the host answered is seen beside.
            }
          }
        }
        return got;
      },
      [paths, home.origin],
    );
    if (read.length > 0) fail(`${name} read ${read.join("; ")}`);

    const sockets = await page.evaluate(
      async ([at]) => {
        const open = (path, protocols) =>
          new Promise((done) => {
            const socket = new WebSocket(at + path, protocols);
            socket.onopen = () => done(`${path} opened`);
            socket.onerror = () => done(null);
          });
        return [await open("/ws", ["boxes", "none"]), await open("/api/boxes/web/terminal", ["boxes", "none"]), await open("/api/boxes/web/acp", ["acp.v1", "bearer.box_token_x"])].filter(Boolean);
      },
      [home.origin.replace("http", "ws")],
    );
    if (sockets.length > 0) fail(`${name}: ${sockets.join("; ")}`);

    // Framed, and posted to by a form.
    const framed = await page.evaluate(
      (at) =>
        new Promise((done) => {
          const frame = document.createElement("iframe");
          frame.src = at;
          frame.onload = () => done(frame.contentDocument === null);
          document.body.append(frame);
        }),
      `${home.origin}/`,
    );
    check(framed, "a frame of ours can be read");
    const inside = page.frames().find((frame) => frame !== page.mainFrame());
    const shows = await inside.evaluate(() => document.querySelector("#page") !== null).catch(() => false);
    if (shows) fail(`${name} shows our page in a frame`);
    await page.evaluate((at) => {
      const form = document.createElement("form");
      form.method = "POST";
      form.action = `${at}/api/boxes`;
      form.enctype = "text/plain";
      form.innerHTML = "<input name='{\"name\":\"owned\",\"a\":\"' value='\"}'>";
      document.body.append(form);
      form.submit();
    }, home.origin);
    await page.waitForLoadState();
    await page.close();
  }

  // A name that is made to lead here.
  const rebound = await context.newPage();
  const answer = await rebound.goto(`http://rebind.example:${home.port}/`);
  check(answer.status() === 421, `another name is answered ${answer.status()}`);
  const inner = await rebound.evaluate(async () => (await fetch("/api/boxes", { credentials: "include" })).status).catch(() => 0);
  check(inner === 421 || inner === 0, `another name reads with ${inner}`);
  await rebound.close();

  // Frames may be asked for: the browser shows none. Everything else was refused.
  const letIn = answers.filter((one) => one.status < 400 && one.path !== "/" && !one.path.startsWith("/assets/"));
  for (const one of letIn) fail(`let in: ${JSON.stringify(one)}`);
  const arrived = (await refused()) - refusedBefore;
  check(arrived > paths.length, `only ${arrived} attacks arrived`);
  const after = JSON.parse(await box("list", "--json"));
  check(JSON.stringify(before) === JSON.stringify(after), "a box came or went");

  // Our own page still works.
  const fine = await own.evaluate(async () => (await fetch("/api/boxes", { headers: { "x-box-proof": localStorage.getItem("boxes:proof") } })).status);
  check(fine === 200, `our own page is answered ${fine}`);
  server.close();
});
