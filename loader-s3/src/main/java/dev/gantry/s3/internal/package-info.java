// SPDX-License-Identifier: Apache-2.0
/// Reads and writes files of S3 and of compatible servers with the AWS SDK and its CRT client.
@NullMarked
package dev.gantry.s3.internal;

import org.jspecify.annotations.NullMarked;
