// SPDX-License-Identifier: Apache-2.0

/// Tells the command line about DJL on this machine.
@NullMarked
package dev.gantry.djl.internal.diagnosis;

import org.jspecify.annotations.NullMarked;
