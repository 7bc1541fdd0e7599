// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import software.amazon.awssdk.crt.s3.S3DirectBufferPoolOptions;

/// The limit of the CRT client's pool of direct buffers. It is half of the direct memory that the
/// JVM allows, so that the program has the other half. The client's own default is four fifths.
///
/// @param partBytes the most bytes that one request asks for
/// @param bytes the limit of all buffers together, many times `partBytes`
record BufferPool(long partBytes, long bytes) {
  /// The number of parts that the client allocates at once.
  private static final int PARTS = 16;

  private static final long LARGEST_PART = 8L << 20;
  private static final long SMALLEST_PART = 1L << 20;

  /// 250 requests at once, of about 90 MB/s each, fill a link of 180 Gb/s.
  private static final long LARGEST_POOL = 2000L << 20;

  static BufferPool ofThisJvm() {
    return of(mostDirectBytes());
  }

  /// @param limit the JVM's limit of direct memory in bytes
  static BufferPool of(long limit) {
    long bytes = Math.min(LARGEST_POOL, limit / 2);
    long part = Math.clamp(Long.highestOneBit(bytes / PARTS), SMALLEST_PART, LARGEST_PART);
    return new BufferPool(part, Math.max(bytes, part));
  }

  /// Returns the JVM's limit of direct memory in bytes; its default is the limit of the heap.
  private static long mostDirectBytes() {
    HotSpotDiagnosticMXBean jvm =
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
    long set = jvm == null ? 0 : Long.parseLong(jvm.getVMOption("MaxDirectMemorySize").getValue());
    return set > 0 ? set : Runtime.getRuntime().maxMemory();
  }

  S3DirectBufferPoolOptions options() {
    return S3DirectBufferPoolOptions.elastic(Math.min(bytes, PARTS * partBytes), bytes);
  }
}
