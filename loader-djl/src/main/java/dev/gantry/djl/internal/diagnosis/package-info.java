// SPDX-License-Identifier: Apache-2.0

/// Describes DJL's installation on this machine for the command line.
@NullMarked
package dev.gantry.djl.internal.diagnosis;

import org.jspecify.annotations.NullMarked;
