// Trades the code behind `#` for a cookie, and forgets it.
const say = (text) => { document.getElementById("say").textContent = text; };
const code = location.hash.slice(1);
history.replaceState(null, "", "/pair");
const pair = async () => {
  if (!code) { say("This address alone pairs nothing: open the whole link."); return; }
  const answer = await fetch("/api/pair", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (answer.ok) {
    // Kept by origin, ports and all; the cookie is not.
    localStorage.setItem("boxes:proof", (await answer.json()).proof);
    say("Paired.");
    location.replace("/");
    return;
  }
  const problem = await answer.json();
  say(problem.hint ? `${problem.title}: ${problem.hint}` : problem.title);
};
pair().catch(() => say("The host does not answer."));
