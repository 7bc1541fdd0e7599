// SPDX-License-Identifier: Apache-2.0
/// Objects in buckets of Google Cloud Storage and Azure Blob Storage, read by ranges over HTTP.
@NullMarked
package dev.gantry.core.internal.objects;

import org.jspecify.annotations.NullMarked;
