//! What every engine must do alike.

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
    asking_twice_succeeds_except_for_create,
    unknown_and_stopped_boxes_are_named,
    files_outlive_a_stop,
    profiles_are_what_they_say,
    commands_run_as_asked,
    boxes_do_not_see_each_other,
    a_command_nobody_waits_for_dies,
    limits_hold_while_a_neighbour_answers,
    a_frozen_box_stands_still,
    limits_change_and_use_is_told,
);
