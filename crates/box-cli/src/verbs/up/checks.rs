//! Looks at the machine before anything is done: what `box doctor` finds, without what is good.

use crate::complaint::Complaint;
use crate::output::{Ink, Output};
use crate::verbs::doctor::{self, Finding, Level, Package};
use box_server::paths::Paths;

/// Tells every problem, then complains about the first that keeps boxes from running.
///
/// # Errors
/// The first finding of [`Level::Bad`].
pub(super) fn look(output: &mut Output, paths: &Paths) -> Result<Vec<Package>, Complaint> {
    output.progress("trying what a box needs");
    let findings = doctor::of_machine(paths);
    let mut is_all_good = true;
    for finding in &findings {
        let (ink, mark) = match finding.level {
            Level::Good | Level::Note => continue,
            Level::Less | Level::Missing => (Ink::Yellow, "·"),
            Level::Bad => (Ink::Red, "✗"),
        };
        is_all_good = false;
        super::mark(output, ink, mark, &line(finding));
    }
    if let Some(bad) = findings.iter().find(|finding| finding.level == Level::Bad) {
        return Err(complaint(bad));
    }
    if is_all_good {
        super::mark(output, Ink::Green, "✓", "has all that boxes need");
    }
    Ok(findings
        .iter()
        .filter_map(|finding| finding.package)
        .collect())
}

/// What is missing is asked about next; what is less is told with its fix.
fn line(finding: &Finding) -> String {
    match (&finding.fix, finding.level) {
        (Some(fix), Level::Less) => format!("{} – {fix}", finding.what),
        (Some(_) | None, _) => finding.what.clone(),
    }
}

fn complaint(finding: &Finding) -> Complaint {
    let mut complaint = Complaint::engine("machine", finding.what.clone());
    if let Some(cause) = &finding.cause {
        complaint = complaint.caused_by(cause);
    }
    if let Some(fix) = &finding.fix {
        complaint = complaint.hinted(format!("{fix}; then `box up` again"));
    }
    complaint
}
