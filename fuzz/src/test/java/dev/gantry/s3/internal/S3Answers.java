// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.fuzz.AnswerServer;
import java.lang.foreign.Arena;
import java.time.Duration;

/// A parser of an S3 server's answers.
public final class S3Answers {
  private static final Location FOLDER = Location.of("s3://bucket/folder");

  private S3Answers() {}

  /// Holds the store, which is opened once, because its client has threads.
  private static final class Only {
    static final S3Store STORE = open();

    private static S3Store open() {
      int port = AnswerServer.structured(new byte[0]).port();
      System.setProperty("aws.accessKeyId", "user");
      System.setProperty("aws.secretAccessKey", "secret");
      System.setProperty("aws.region", "us-east-1");
      System.setProperty("aws.endpointUrlS3", "http://127.0.0.1:" + port);
      return new S3Store(new S3Settings(new RetryLimits(1, Duration.ZERO, Duration.ofSeconds(20))));
    }
  }

  /// Requests a list of objects or an object from a server whose answers have the form of
  /// [AnswerServer#structured].
  public static void answers(byte[] input) {
    S3Store store = Only.STORE;
    AnswerServer _ = AnswerServer.structured(input);
    switch (input.length == 0 ? 0 : input[0] & 3) {
      case 0 -> {
        var _ = store.list(FOLDER);
      }
      case 1 -> {
        var _ = store.below(FOLDER);
      }
      default -> {
        Location.Remote file = (Location.Remote) Location.of("s3://bucket/folder/a");
        try (SourceFile open = new SourceFile(file, store.open(file, CachePolicy.BUFFERED));
            Arena arena = Arena.ofShared()) {
          long bytes = Math.min(8, open.size());
          boolean _ = open.read(arena.allocate(Math.max(1, bytes)), 0, bytes, false);
        }
      }
    }
  }
}
