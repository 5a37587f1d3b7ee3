//! The one table of endpoints: dispatch and the `OpenAPI` document both come from it.

use super::call::{Call, Called};
use super::{
    agents, boxes, checklist, clone, decisions, doctor, files, me, network, new_box, openapi,
    plain, policy, power, push, remove, rename, run, search, shell, sign_ins, snapshots, thread,
    thread_commands, thread_log, threads, tokens, trash, usage, workspace,
};
use hyper::Method;
use std::pin::Pin;

type Running = Pin<Box<dyn Future<Output = Called> + Send>>;

/// An endpoint.
pub(super) struct Route {
    pub(super) method: Method,
    /// Segments in braces stand for anything.
    pub(super) path: &'static str,
    /// What it is for, in a line.
    pub(super) about: &'static str,
    /// The type of its body, by its name among the page's types; empty: none.
    pub(super) takes: &'static str,
    /// The type of its answer, likewise.
    pub(super) gives: &'static str,
    pub(super) status: u16,
    pub(super) run: fn(Call) -> Running,
}

/// What a request leads to.
pub(super) enum Found {
    Route(&'static Route, Vec<String>),
    /// The terminal of this box, which is a WebSocket.
    Terminal(String),
    OtherMethod,
    Nothing,
}

macro_rules! route {
    ($method:ident $path:literal, $about:literal, $takes:literal => $status:literal $gives:literal, $run:path) => {
        Route {
            method: Method::$method,
            path: $path,
            about: $about,
            takes: $takes,
            gives: $gives,
            status: $status,
            run: |call| Box::pin($run(call)),
        }
    };
}

/// Every endpoint that needs a cookie and is no socket.
#[rustfmt::skip]
pub(super) static ROUTES: &[Route] = &[
    route!(GET "/api/me", "Who this browser is taken for", "" => 200 "Me", me::handle),
    route!(POST "/api/sign-out", "Ends this browser's sign-in", "" => 204 "", me::sign_out),
    route!(GET "/api/sign-ins", "Browsers that are let in", "" => 200 "SignIns", sign_ins::list),
    route!(DELETE "/api/sign-ins/{id}", "Revokes a sign-in at once", "" => 204 "", sign_ins::revoke),
    route!(POST "/api/sign-ins", "A link that pairs another browser", "" => 201 "NewLink", sign_ins::link),
    route!(GET "/api/tokens", "Tokens of programs", "" => 200 "Tokens", tokens::list),
    route!(POST "/api/tokens", "A token for a program, shown this once", "TokenAsk" => 201 "NewToken", tokens::add),
    route!(DELETE "/api/tokens/{id}", "Revokes a token at once", "" => 204 "", tokens::revoke),
    route!(GET "/api/status", "What runs here", "" => 200 "Status", doctor::status),
    route!(GET "/api/doctor", "What this machine offers and lacks", "" => 200 "Doctor", doctor::handle),
    route!(GET "/api/agents", "Agents there are", "" => 200 "Agents", agents::handle),
    route!(GET "/api/boxes", "The caller's boxes", "" => 200 "Boxes", boxes::list),
    route!(POST "/api/boxes", "Makes a box and starts it", "NewBoxAsk" => 201 "BoxInfo", new_box::handle),
    route!(GET "/api/boxes/{box}", "One box", "" => 200 "BoxInfo", boxes::one),
    route!(POST "/api/boxes/{box}/start", "Starts it", "" => 200 "BoxInfo", power::start),
    route!(POST "/api/boxes/{box}/stop", "Stops it; files stay", "Hurry" => 200 "BoxInfo", power::stop),
    route!(POST "/api/boxes/{box}/restart", "Stops it and starts it", "Hurry" => 200 "BoxInfo", power::restart),
    route!(POST "/api/boxes/{box}/freeze", "Lets all of it stand still", "" => 200 "BoxInfo", power::freeze),
    route!(POST "/api/boxes/{box}/thaw", "Lets it go on", "" => 200 "BoxInfo", power::thaw),
    route!(POST "/api/boxes/{box}/rename", "Gives it another name", "RenameAsk" => 200 "BoxInfo", rename::handle),
    route!(POST "/api/boxes/{box}/remove", "Into the trash, or at once", "RemoveAsk" => 204 "", remove::handle),
    route!(GET "/api/trash", "Boxes in the trash, newest first", "" => 200 "Boxes", trash::list),
    route!(POST "/api/trash/{id}/undelete", "Takes a box out of the trash", "UndeleteAsk" => 200 "BoxInfo", trash::undelete),
    route!(GET "/api/boxes/{box}/threads", "Its threads, newest first", "" => 200 "Threads", threads::of_box),
    route!(POST "/api/boxes/{box}/threads", "Begins a thread without a prompt", "OpenAsk" => 201 "Begun", threads::open),
    route!(POST "/api/boxes/{box}/files", "Puts a file where its agent finds it", "file" => 201 "Attached", files::handle),
    route!(GET "/api/boxes/{box}/files", "Gives an attached file back", "" => 200 "file", files::read),
    route!(GET "/api/boxes/{box}/workspace", "Files whose names fit", "" => 200 "FoundFiles", workspace::find),
    route!(POST "/api/boxes/{box}/clone", "Makes a box of its files", "CloneAsk" => 201 "BoxInfo", clone::handle),
    route!(GET "/api/boxes/{box}/snapshots", "Its snapshots", "" => 200 "SnapshotList", snapshots::list),
    route!(POST "/api/boxes/{box}/snapshots", "Takes one", "TakeAsk" => 201 "SnapshotInfo", snapshots::take),
    route!(DELETE "/api/boxes/{box}/snapshots/{label}", "Removes one", "" => 204 "", snapshots::remove),
    route!(POST "/api/boxes/{box}/snapshots/{label}/restore", "Brings the box back to it", "" => 200 "Restored", snapshots::restore),
    route!(GET "/api/boxes/{box}/restore-points", "What it was before each turn", "" => 200 "RestorePoints", snapshots::points),
    route!(GET "/api/boxes/{box}/net", "What it did over the network", "" => 200 "NetLog", network::handle),
    route!(GET "/api/boxes/{box}/policy", "What it may reach", "" => 200 "PolicyShown", policy::handle),
    route!(GET "/api/boxes/{box}/events", "What befell it", "" => 200 "Events", boxes::events),
    route!(GET "/api/usage", "What boxes use now; takes half a second", "" => 200 "UsageNow", usage::handle),
    route!(POST "/api/search", "Full text search over threads", "SearchAsk" => 200 "Found", search::handle),
    route!(GET "/api/threads", "The caller's threads, newest first", "" => 200 "Threads", threads::all),
    route!(POST "/api/threads", "Sets an agent to work", "RunAsk" => 201 "Begun", run::handle),
    route!(GET "/api/threads/{thread}", "One thread beside its journal", "" => 200 "ThreadHead", thread::show),
    route!(POST "/api/threads/{thread}/act", "Does something with it", "ThreadAct" => 200 "ThreadShown", thread::act),
    route!(POST "/api/threads/{thread}/shell", "Runs a `!` line in its box", "ShellAsk" => 200 "ShellEnded", shell::handle),
    route!(POST "/api/threads/{thread}/park", "Lets nothing of it begin before a time", "ParkAsk" => 200 "ParkedThreads", thread::park),
    route!(POST "/api/threads/{thread}/resume", "Lets it go on", "" => 200 "ParkedThreads", thread::resume),
    route!(GET "/api/threads/{thread}/log", "Its journal from a cursor on; waits for news", "" => 200 "LogPage", thread_log::follow),
    route!(GET "/api/threads/{thread}/commands", "What its agent offers after a slash", "" => 200 "AgentCommands", thread_commands::handle),
    route!(GET "/api/threads/{thread}/rows", "Rows before one", "" => 200 "RowsPage", thread_log::rows),
    route!(GET "/api/threads/{thread}/rows/{seq}", "One row, whole", "" => 200 "JournalRow", thread_log::row),
    route!(POST "/api/threads/{thread}/plain", "Lets this browser read it without a script, for an hour", "" => 204 "", plain::allow),
    route!(GET "/api/decisions", "What waits for the caller", "" => 200 "Decisions", decisions::list),
    route!(POST "/api/decisions/{id}/answer", "Chooses an option; the first answer wins", "AnswerAsk" => 204 "", decisions::answer),
    route!(POST "/api/decisions/{id}/form", "Fills in a form, declines it or takes it away", "FormAnswer" => 204 "", decisions::form),
    route!(GET "/api/push", "Which browsers are told while nobody looks", "" => 200 "PushState", push::state),
    route!(POST "/api/push", "This browser is told from now on", "PushAsk" => 201 "PushDevice", push::subscribe),
    route!(DELETE "/api/push/{sign_in}", "A browser is told no more", "" => 204 "", push::unsubscribe),
    route!(POST "/api/push/key", "The host's key for subscriptions", "" => 200 "PushKey", push::key),
    route!(POST "/api/push/test", "Writes to this browser at once", "" => 200 "PushTested", push::test),
    route!(GET "/api/checklist", "What is on here, and what is off and why", "" => 200 "Checklist", checklist::handle),
    route!(POST "/api/logins", "An agent's account; the token stays in memory", "LoginAsk" => 204 "", checklist::login),
    route!(GET "/api/openapi.json", "This table as an OpenAPI document", "" => 200 "OpenApi", openapi::handle),
];

/// The endpoint for a path, and what stands where it has names in braces.
pub(super) fn find(method: &Method, path: &str) -> Found {
    let method = if *method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let mut other_method = false;
    for route in ROUTES {
        let Some(names) = matched(route.path, path) else {
            continue;
        };
        if route.method == *method {
            return Found::Route(route, names);
        }
        other_method = true;
    }
    if other_method {
        Found::OtherMethod
    } else {
        Found::Nothing
    }
}

fn matched(pattern: &str, path: &str) -> Option<Vec<String>> {
    let (mut wanted, mut there) = (pattern.split('/'), path.split('/'));
    let mut names = Vec::new();
    loop {
        match (wanted.next(), there.next()) {
            (None, None) => return Some(names),
            (Some(name), Some(text)) if name.starts_with('{') => names.push(plain(text)?),
            (Some(name), Some(text)) if name == text => {}
            _ => return None,
        }
    }
}

/// Ids and names need no escapes: one that has any names nothing here.
fn plain(text: &str) -> Option<String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (!text.is_empty() && text.bytes().all(known)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_endpoint_hides_another() {
        let all: BTreeSet<(&str, &str)> = ROUTES
            .iter()
            .map(|route| (route.method.as_str(), route.path))
            .collect();
        assert_eq!(all.len(), ROUTES.len());
        for route in ROUTES {
            let path = route.path.replace(['{', '}'], "");
            let Found::Route(found, _) = find(&route.method, &path) else {
                panic!("{path} leads nowhere");
            };
            assert_eq!(found.path, route.path);
        }
    }

    #[test]
    fn names_are_taken_out_of_the_path() {
        let Found::Route(route, names) = find(&Method::DELETE, "/api/boxes/demo/snapshots/v1.2")
        else {
            panic!("not found");
        };
        assert_eq!(
            (route.path, names.as_slice()),
            (
                "/api/boxes/{box}/snapshots/{label}",
                &["demo".to_owned(), "v1.2".to_owned()][..]
            )
        );
        assert!(matches!(
            find(&Method::PUT, "/api/boxes"),
            Found::OtherMethod
        ));
        for nothing in [
            "/api",
            "/api/",
            "/api/boxes/",
            "/api/boxes/a%2fb",
            "/api/boxes/../me",
            "/api/boxes/demo/x",
        ] {
            let found = find(&Method::GET, nothing);
            assert!(
                matches!(found, Found::Nothing) || nothing.contains(".."),
                "{nothing}"
            );
        }
    }
}
