// SPDX-License-Identifier: Apache-2.0
/// Programs that read from other machines.
@NullMarked
package dev.gantry.samples.remote;

import org.jspecify.annotations.NullMarked;
