// SPDX-License-Identifier: Apache-2.0
/// Cleans up after a command: interrupts it when the JVM is told to end, and deletes its
/// temporary folder.
@NullMarked
package dev.gantry.cli.internal.process;

import org.jspecify.annotations.NullMarked;
