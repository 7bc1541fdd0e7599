// SPDX-License-Identifier: Apache-2.0
/// Keeps remote files on a disk of this machine: a folder that several processes share.
@NullMarked
package dev.gantry.core.internal.cache;

import org.jspecify.annotations.NullMarked;
