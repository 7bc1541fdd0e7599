// SPDX-License-Identifier: Apache-2.0
/// Threads that share a job, and are kept for the next one.
@NullMarked
package dev.gantry.core.internal.threads;

import org.jspecify.annotations.NullMarked;
