// SPDX-License-Identifier: Apache-2.0
/// Programs that load files of other programs.
@NullMarked
package dev.gantry.samples.files;

import org.jspecify.annotations.NullMarked;
