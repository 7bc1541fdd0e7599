// SPDX-License-Identifier: Apache-2.0
/// Says what this machine has, which transport a file would use, and what to do about what is missing.
@NullMarked
package dev.gantry.core.internal.diagnosis;

import org.jspecify.annotations.NullMarked;
