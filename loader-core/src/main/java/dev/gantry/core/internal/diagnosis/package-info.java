// SPDX-License-Identifier: Apache-2.0
/// Describes this machine, predicts the transport of a file, and names remedies for missing parts.
@NullMarked
package dev.gantry.core.internal.diagnosis;

import org.jspecify.annotations.NullMarked;
