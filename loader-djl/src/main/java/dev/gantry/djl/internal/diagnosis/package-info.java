// SPDX-License-Identifier: Apache-2.0

/// What the command line tells of DJL on this machine.
@NullMarked
package dev.gantry.djl.internal.diagnosis;

import org.jspecify.annotations.NullMarked;
