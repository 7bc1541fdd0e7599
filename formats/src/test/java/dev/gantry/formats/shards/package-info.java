// SPDX-License-Identifier: Apache-2.0
@NullMarked
package dev.gantry.formats.shards;

import org.jspecify.annotations.NullMarked;
