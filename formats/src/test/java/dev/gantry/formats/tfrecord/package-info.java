// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.tfrecord;

import org.jspecify.annotations.NullMarked;
