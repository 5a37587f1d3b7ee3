//! What every engine with snapshots must do alike.

use crate::harness::Host;
use box_runtime::conformance;

macro_rules! alike {
    ($($name:ident),+ $(,)?) => {
        $(fn $name(host: &mut Host) {
            let (engine, image) = (host.engine().clone(), host.image.clone());
            let held = host.wait(conformance::$name(&engine, &image));
            if let Err(broken) = held {
                panic!("{broken}");
            }
        })+
        crate::claims!($($name),+);
    };
}

alike!(
    restoring_brings_the_files_back,
    snapshots_that_cannot_be_are_refused,
    a_removed_box_takes_its_snapshots_along,
    a_clone_has_everything_but_the_identity,
);
