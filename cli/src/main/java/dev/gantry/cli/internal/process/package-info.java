// SPDX-License-Identifier: Apache-2.0
/// The resources of one run of a command: its temporary folder and its child JVMs.
@NullMarked
package dev.gantry.cli.internal.process;

import org.jspecify.annotations.NullMarked;
