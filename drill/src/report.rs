//! What a drill found.

use crate::Probe;
use serde::{Deserialize, Serialize};

/// Every probe of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub engine: String,
    pub profile: String,
    /// Whether the boxes may hold containers.
    #[serde(default)]
    pub nested: bool,
    pub probes: Vec<ProbeReport>,
}

impl Report {
    /// Whether every claim held and every control passed.
    pub fn all_held(&self) -> bool {
        self.probes.iter().all(|probe| match probe.outcome {
            Outcome::Held => probe.control == Control::Passed,
            Outcome::NotApplicable => true,
            Outcome::Broken => false,
        })
    }
}

/// One probe of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    pub name: String,
    pub claim: String,
    pub outcome: Outcome,
    pub control: Control,
    /// What was seen; always there when something is not as claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ProbeReport {
    pub(crate) fn new(probe: &Probe, finding: Finding) -> Self {
        Self {
            name: probe.name.to_owned(),
            claim: probe.claim.to_owned(),
            outcome: finding.outcome,
            control: finding.control,
            reason: finding.reason,
        }
    }

    /// The same attack, made from a container in the box.
    pub(crate) fn made_in_a_container(self) -> Self {
        Self {
            name: format!("nested-{}", self.name),
            claim: format!("from a container in the box: {}", self.claim),
            ..self
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The attack failed, as claimed.
    Held,
    /// The attack worked.
    Broken,
    /// The claim means nothing here; the reason says why.
    NotApplicable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    Passed,
    Failed,
    /// There was nothing to control.
    None,
}

/// What one probe saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    outcome: Outcome,
    control: Control,
    reason: Option<String>,
}

impl Finding {
    /// Judges attacks that must all have failed beside controls that must all have worked. What did
    /// not go as it must is the reason.
    /// Controls that only root of the machine could pass are left out; where no others are, the claim
    /// means nothing.
    pub fn judge(attacks: &[Attempt], controls: &[Attempt]) -> Self {
        let (for_root, controls): (Vec<&Attempt>, Vec<&Attempt>) = controls
            .iter()
            .partition(|control| control.is_for_root_alone());
        if controls.is_empty()
            && !for_root.is_empty()
            && attacks.iter().all(|attack| !attack.worked)
        {
            return Self::not_applicable("refused to an ordinary user outside a box as well");
        }
        let worked: Vec<String> = attacks
            .iter()
            .filter(|attack| attack.worked)
            .map(Attempt::text)
            .collect();
        let failed: Vec<String> = controls
            .iter()
            .filter(|control| !control.worked)
            .map(|control| control.text())
            .collect();
        let mut reasons = Vec::new();
        if !worked.is_empty() {
            reasons.push(format!("worked: {}", worked.join("; ")));
        }
        if !failed.is_empty() || controls.is_empty() {
            reasons.push(format!("control failed: {}", failed.join("; ")));
        }
        Self {
            outcome: if worked.is_empty() {
                Outcome::Held
            } else {
                Outcome::Broken
            },
            control: if failed.is_empty() && !controls.is_empty() {
                Control::Passed
            } else {
                Control::Failed
            },
            reason: (!reasons.is_empty()).then(|| reasons.join(" · ")),
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.outcome == Outcome::Broken
    }

    /// The claim means nothing in this box.
    pub fn not_applicable(reason: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::NotApplicable,
            control: Control::None,
            reason: Some(reason.into()),
        }
    }

    /// The probe could not be carried out, so nothing was shown.
    pub(crate) fn inconclusive(reason: String) -> Self {
        Self {
            outcome: Outcome::Held,
            control: Control::Failed,
            reason: Some(reason),
        }
    }
}

/// Begins the name of an act that only root of the machine may carry out.
const FOR_ROOT_ALONE: &str = "for root alone: ";

/// One act, and whether it did what it was meant to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub what: String,
    pub worked: bool,
    pub saw: String,
}

impl Attempt {
    /// Something that must work, as an attack on it.
    pub(crate) fn reversed(self) -> Self {
        Self {
            what: format!("keep this from working: {}", self.what),
            worked: !self.worked,
            saw: self.saw,
        }
    }

    /// Something that was refused to an ordinary user on the machine itself.
    pub(crate) fn for_root_alone(self) -> Self {
        Self {
            what: format!("{FOR_ROOT_ALONE}{}", self.what),
            ..self
        }
    }

    fn is_for_root_alone(&self) -> bool {
        self.what.starts_with(FOR_ROOT_ALONE)
    }

    fn text(&self) -> String {
        format!("{} ({})", self.what, self.saw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(saw: &str) -> Attempt {
        Attempt {
            what: "open x".to_owned(),
            worked: saw == "ok",
            saw: saw.to_owned(),
        }
    }

    #[test]
    fn a_probe_holds_only_beside_a_control_that_passed() {
        let held = Finding::judge(&[attempt("EPERM")], &[attempt("ok")]);
        assert_eq!(
            (held.outcome, held.control),
            (Outcome::Held, Control::Passed)
        );
        assert_eq!(held.reason, None);
        let dead = Finding::judge(&[attempt("EPERM")], &[attempt("EPERM")]);
        assert_eq!(
            (dead.outcome, dead.control),
            (Outcome::Held, Control::Failed)
        );
        let alone = Finding::judge(&[attempt("EPERM")], &[]);
        assert_eq!(alone.control, Control::Failed);
        let broken = Finding::judge(&[attempt("EPERM"), attempt("ok")], &[attempt("ok")]);
        assert_eq!(broken.outcome, Outcome::Broken);
        assert_eq!(broken.reason.as_deref(), Some("worked: open x (ok)"));
    }

    #[test]
    fn what_only_root_may_do_is_no_control_of_an_ordinary_users_drill() {
        let refused = attempt("EPERM").for_root_alone();
        let beside = Finding::judge(&[attempt("EPERM")], &[refused.clone(), attempt("ok")]);
        assert_eq!(
            (beside.outcome, beside.control),
            (Outcome::Held, Control::Passed)
        );
        let alone = Finding::judge(&[attempt("EPERM")], std::slice::from_ref(&refused));
        assert_eq!(alone.outcome, Outcome::NotApplicable);
        let broken = Finding::judge(&[attempt("ok")], &[refused]);
        assert_eq!(
            (broken.outcome, broken.control),
            (Outcome::Broken, Control::Failed)
        );
    }

    #[test]
    fn a_report_with_a_failed_control_has_not_held() {
        let probe = |outcome, control| ProbeReport {
            name: "p".to_owned(),
            claim: "c".to_owned(),
            outcome,
            control,
            reason: None,
        };
        let report = |probes| Report {
            engine: "e".to_owned(),
            profile: "locked".to_owned(),
            nested: false,
            probes,
        };
        assert!(report(vec![probe(Outcome::Held, Control::Passed)]).all_held());
        assert!(report(vec![probe(Outcome::NotApplicable, Control::None)]).all_held());
        assert!(!report(vec![probe(Outcome::Held, Control::Failed)]).all_held());
        assert!(!report(vec![probe(Outcome::Broken, Control::Passed)]).all_held());
    }
}
