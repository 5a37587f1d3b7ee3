// A thread as a document without a script: this browser is let read it, then goes there.
import { app } from "../app";
import { Refused, ask } from "../rest";

export function PlainView({ id }: { id: string }) {
  const open = async () => {
    try {
      await ask("POST", `/threads/${id}/plain`);
      location.assign(`/plain/${id}`);
    } catch (error) {
      app.say(error instanceof Refused ? error.message : "It did not work");
    }
  };
  return (
    <button type="button" class="btn btn-soft w-full" onClick={open}>
      Plain view
    </button>
  );
}
