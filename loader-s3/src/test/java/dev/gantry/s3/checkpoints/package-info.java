// SPDX-License-Identifier: Apache-2.0
/// Tests of checkpoints that are copied to S3.
@NullMarked
package dev.gantry.s3.checkpoints;

import org.jspecify.annotations.NullMarked;
