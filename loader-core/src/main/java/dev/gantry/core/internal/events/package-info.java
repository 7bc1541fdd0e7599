// SPDX-License-Identifier: Apache-2.0
/// Flight recorder events (JFR) of loads, reads, copies, waits and saves.
///
/// An event that is not recorded costs a check of a flag. Text is made only when an event is
/// written. Reads, copies and waits have a threshold of 20 ms, as the JDK's own events of files
/// and locks have: a large load has thousands of each kind, and they would push other events out
/// of a recording that runs all the time. A recording that needs all events sets their threshold
/// to 0.
///
/// Loading the first class of an event costs a process some 50 ms, and a runtime without the
/// module `jdk.jfr` cannot load it. So an `EventKind` makes the class of its events only after a
/// recorder was started.
@NullMarked
package dev.gantry.core.internal.events;

import org.jspecify.annotations.NullMarked;
