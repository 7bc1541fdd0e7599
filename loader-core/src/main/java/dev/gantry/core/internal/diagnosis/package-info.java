// SPDX-License-Identifier: Apache-2.0
/// What this machine has, which transport a file would use, and what to do about what is missing.
@NullMarked
package dev.gantry.core.internal.diagnosis;

import org.jspecify.annotations.NullMarked;
