// SPDX-License-Identifier: Apache-2.0
/// Meters for Micrometer, which only this package needs.
@NullMarked
package dev.gantry.core.micrometer;

import org.jspecify.annotations.NullMarked;
