// SPDX-License-Identifier: Apache-2.0
/// Programs for machines with several GPUs.
@NullMarked
package dev.gantry.samples.gpus;

import org.jspecify.annotations.NullMarked;
