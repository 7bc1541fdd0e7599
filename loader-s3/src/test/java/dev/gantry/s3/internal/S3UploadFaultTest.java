// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.s3.testing.FaultProxy;
import dev.gantry.s3.testing.FaultProxy.Answer;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import software.amazon.awssdk.services.s3.S3AsyncClient;

/// Uploads to an S3 server that refuses, or is not heard: they are repeated, or there is one error and
/// the object is as it was before.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class S3UploadFaultTest {
  /// Three parts.
  private static final int LARGE = 17_000_003;

  private static final int SMALL = 100_003;

  @TempDir private Path folder;
  private final S3Server server = S3Server.inMemory();
  private final FaultProxy proxy = new FaultProxy(server.endpoint());
  private final S3Store store;
  private final Location object = S3Server.location("runs/model.safetensors");

  S3UploadFaultTest() {
    server.pointAt(proxy.endpoint());
    store =
        new S3Store(
            new S3Settings(new RetryLimits(4, Duration.ofMillis(10), Duration.ofSeconds(2))));
  }

  @BeforeEach
  void anOldObject() {
    Location _ = server.put("runs/model.safetensors", new byte[7]);
  }

  @AfterEach
  void close() {
    store.close();
    proxy.close();
    server.close();
  }

  private void upload(int bytes) {
    try {
      store.upload(
          Files.write(folder.resolve("model.safetensors"), TestFiles.bytes(3, bytes)), object);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private long size() {
    try (StoredFile opened = store.open(object, CachePolicy.BUFFERED)) {
      return opened.size();
    }
  }

  private TransferException failure(int bytes) {
    TransferException failure = catchThrowableOfType(TransferException.class, () -> upload(bytes));
    assertThat(failure).isNotNull();
    assertThat(failure.getMessage())
        .startsWith("PUT failed: " + object)
        .doesNotContain("\n")
        .doesNotContain("test-user")
        .doesNotContain("test-secret");
    assertThat(size()).isEqualTo(7);
    assertThat(store.below(S3Server.location("runs")))
        .containsExactly(new WritableStore.Entry("model.safetensors", 7));
    return failure;
  }

  @ParameterizedTest
  @EnumSource(names = {"SLOW_DOWN", "INTERNAL_ERROR", "CUT_UPLOAD", "RESET"})
  void aFaultThatPassesIsTriedAgain(Answer answer) {
    proxy.answerUploads(number -> number == 0 ? answer : Answer.RIGHT);
    upload(SMALL);
    assertThat(size()).isEqualTo(SMALL);
    assertThat(proxy.uploads()).isEqualTo(2);
  }

  @ParameterizedTest
  @EnumSource(names = {"SLOW_DOWN", "CUT_UPLOAD"})
  void aPartIsTriedAgain(Answer answer) {
    proxy.answerUploads(
        number -> number == 0 || number == 2 || number == 4 ? answer : Answer.RIGHT);
    upload(LARGE);
    assertThat(size()).isEqualTo(LARGE);
  }

  @ParameterizedTest
  @CsvSource({
    "SLOW_DOWN, 503",
    "INTERNAL_ERROR, 500",
    "EXPIRED, 400",
    "DENIED, 403",
    "FAILED_CONDITION, 412",
    "CONFLICT, 409"
  })
  void aRefusalIsOneErrorAndChangesNothing(Answer answer, int status) {
    proxy.answerUploads(_ -> answer);
    Failure failure = failure(SMALL).failure();
    assertThat(failure).isInstanceOf(Failure.Remote.class);
    assertThat(((Failure.Remote) failure).status()).isEqualTo(status);
    if (answer == Answer.EXPIRED) {
      assertThat(failure.toString()).contains("the credentials have expired; renew them");
    }
  }

  @Test
  void whatWasBegunIsAborted() {
    // The upload is created, and its parts are refused.
    proxy.answerUploads(number -> number == 0 ? Answer.RIGHT : Answer.DENIED);
    Failure failure = failure(LARGE).failure();
    assertThat(((Failure.Remote) failure).status()).isEqualTo(403);
    proxy.answerUploads(_ -> Answer.RIGHT);
    try (S3AsyncClient client = S3AsyncClient.crtBuilder().forcePathStyle(true).build()) {
      assertThat(client.listMultipartUploads(list -> list.bucket(S3Server.BUCKET)).join().uploads())
          .isEmpty();
    }
    upload(LARGE);
    assertThat(size()).isEqualTo(LARGE);
  }

  @Test
  void wrongCredentialsAreOneLine() {
    server.set("aws.secretAccessKey", "not-the-secret");
    TransferException failure = catchThrowableOfType(TransferException.class, () -> upload(SMALL));
    assertThat(failure.failure()).isInstanceOf(Failure.Remote.class);
    assertThat(failure.getMessage()).contains("status 403").doesNotContain("not-the-secret");
  }
}
