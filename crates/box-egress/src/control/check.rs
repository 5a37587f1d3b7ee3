//! `Check`: what would become of a connection, a request, an address, by the same decisions.

use super::Keeper;
use crate::intercept::scope;
use crate::policy::{self, Settings, addresses, decide, requests};
use box_api::BoxId;
use box_api::egress::policy::Rule;
use box_api::egress::{Answer, AskedRequest, Checked, HostName, Reason, Verdict};
use std::net::IpAddr;

/// What is asked about.
pub(super) struct Question {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) asked: Option<AskedRequest>,
    pub(super) address: Option<IpAddr>,
}

impl Keeper {
    pub(super) fn check(&self, box_id: &BoxId, question: &Question) -> Result<Answer, String> {
        let held = self.held(box_id)?;
        let settings = held.settings.borrow();
        let Ok(host) = HostName::parse(&question.host) else {
            let verdict = of_no_name(&settings, &question.host);
            return Ok(Answer::Checked(Checked {
                verdict,
                intercepted: false,
                note: String::new(),
            }));
        };
        let intercepted = policy::is_intercepted(&settings, &host) && question.port == 443;
        let is_configured = self.holdings.borrow().configured.is_some();
        let verdict = match decided(&settings, &host, question) {
            Verdict::Allowed { .. } if !is_configured => refused((Reason::NoPolicy, None)),
            Verdict::Allowed { .. } if intercepted && !self.has_ca => refused((Reason::NoCa, None)),
            decided @ (Verdict::Allowed { .. } | Verdict::Refused { .. }) => decided,
        };
        let is_allowed = matches!(verdict, Verdict::Allowed { .. });
        let asked = question.asked.as_ref();
        let asked = asked.filter(|_| intercepted && is_allowed);
        // Behind everything else, as it is when a request comes.
        let written = asked.map_or(Ok(String::new()), |asked| {
            scope::foretell(&settings, &host, asked)
        });
        let (verdict, note) = match written {
            Ok(note) => (verdict, note),
            Err(why) => (refused((Reason::GithubScope, None)), why),
        };
        Ok(Answer::Checked(Checked {
            verdict,
            intercepted,
            note,
        }))
    }
}

/// An address is only ever looked for in the networks that are denied: it is refused in any case.
fn of_no_name(settings: &Settings, host: &str) -> Verdict {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(addr) => {
            refused(addresses::denied_network(settings, addr).unwrap_or((Reason::IpLiteral, None)))
        }
        Err(_) => refused((Reason::Malformed, None)),
    }
}

fn decided(settings: &Settings, host: &HostName, question: &Question) -> Verdict {
    let by_host = decide(settings, host, question.port);
    let allowed = match policy::admit(settings, host, question.port) {
        Ok(allowed) => allowed,
        // The decision's own refusal names its rule; the way's has none.
        Err(_) if matches!(by_host, Verdict::Refused { .. }) => return by_host,
        Err(stopped) => return refused((stopped.reason, None)),
    };
    if let Some(addr) = question.address
        && let Err(unfit) = addresses::judge(settings, &allowed, addr)
    {
        return refused(unfit);
    }
    let asked = question.asked.as_ref();
    let Some(asked) = asked.filter(|_| allowed.way() == policy::Way::Intercept) else {
        return by_host;
    };
    match requests::judge(settings, host, (&asked.method, &asked.path)) {
        Err(unfit) => refused(unfit),
        Ok(Some(requests::Judged {
            rule: Some(rule), ..
        })) => Verdict::Allowed { rule },
        Ok(_) => by_host,
    }
}

fn refused((reason, rule): (Reason, Option<Rule>)) -> Verdict {
    Verdict::Refused { reason, rule }
}
