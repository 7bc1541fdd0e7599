// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.samples.spark;

import org.jspecify.annotations.NullMarked;
