// SPDX-License-Identifier: Apache-2.0
/// Files of S3 and of servers that speak its protocol, read by the AWS SDK and its CRT client.
@NullMarked
package dev.gantry.s3.internal;

import org.jspecify.annotations.NullMarked;
