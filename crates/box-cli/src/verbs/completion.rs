//! `box completion`: what a shell needs to complete verbs and options. From the one table of verbs.

use super::Ended;
use crate::output::{Format, Output};
use clap_complete::Shell;

/// Print what a shell needs to complete verbs and options
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box completion bash > ~/.local/share/bash-completion/completions/box\n  \
    box completion zsh > ~/.local/share/zsh/site-functions/_box\n  \
    box completion fish > ~/.config/fish/completions/box.fish\n\n\
    `box install` puts all three where their shells look.")]
pub(super) struct Args {
    #[arg(value_enum)]
    shell: ShellName,
}

/// The shells there are completions for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ShellName {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(args: &Args) -> Ended {
    Output::new(Format::Text).data(&script(args.shell))?;
    Ok(0)
}

/// What the shell reads.
pub(super) fn script(shell: ShellName) -> Vec<u8> {
    let shell = match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::table(), "box", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn every_shell_knows_every_verb_and_nothing_that_is_hidden() {
        for shell in ShellName::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            for verb in super::super::table().get_subcommands() {
                let name = verb.get_name();
                assert!(script.contains(name), "{shell:?} lacks `{name}`");
            }
            for hidden in ["host-uid", "--step", "--try", "egress)"] {
                assert!(!script.contains(hidden), "{shell:?} shows `{hidden}`");
            }
        }
    }
}
