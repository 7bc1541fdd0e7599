// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.objects.ObjectName;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.s3.testing.FaultProxy;
import dev.gantry.s3.testing.FaultProxy.Answer;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
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
import software.amazon.awssdk.services.s3.model.MultipartUpload;

/// Tests uploads to an S3 server that refuses requests, or whose answers get lost. Either
/// repeated requests succeed, or there is one error and the object stays as it was before.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class S3UploadFaultTest {
  private static final int PART = 5 << 20;

  /// The size of an object that is uploaded in three parts.
  private static final int LARGE = 2 * PART + 200_003;

  /// The size of an object that is uploaded in eight parts.
  private static final int MANY = 7 * PART + 3;

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
    // The server accepts the request that begins the upload, and refuses its parts.
    proxy.answerUploads(number -> number == 0 ? Answer.RIGHT : Answer.DENIED);
    Failure failure = failure(LARGE).failure();
    assertThat(((Failure.Remote) failure).status()).isEqualTo(403);
    proxy.answerUploads(_ -> Answer.RIGHT);
    assertThat(begun()).isEmpty();
    upload(LARGE);
    assertThat(size()).isEqualTo(LARGE);
  }

  @Test
  void anInterruptionEndsTheUploadAtOnceAndLeavesWhatIsThere() throws Exception {
    // The server accepts the request that begins the upload, and does not answer its parts.
    interrupt(LARGE, 1);
    assertThat(begun()).hasSize(1);
  }

  @Test
  void anInterruptionEndsTheRequestOfASmallFileAtOnce() throws Exception {
    interrupt(SMALL, 0);
    assertThat(size()).isEqualTo(7);
  }

  /// Interrupts an upload while the server does not answer, and closes the store.
  ///
  /// @param answered how many requests the server answers
  private void interrupt(int bytes, int answered) throws Exception {
    CountDownLatch asked = new CountDownLatch(answered + 1);
    CountDownLatch over = new CountDownLatch(1);
    proxy.answerUploads(number -> {
      asked.countDown();
      if (number >= answered) {
        Latches.await(over);
      }
      return number >= answered ? Answer.CUT_UPLOAD : Answer.RIGHT;
    });
    Path file = Files.write(folder.resolve("model.safetensors"), TestFiles.bytes(3, bytes));
    CompletableFuture<TransferException> end = new CompletableFuture<>();
    try (S3Store patient =
        new S3Store(
            new S3Settings(new RetryLimits(4, Duration.ofMillis(10), Duration.ofMinutes(5))))) {
      Thread uploading =
          Thread.ofPlatform()
              .start(() ->
                  end.complete(
                      catchThrowableOfType(
                          TransferException.class, () -> patient.upload(file, object))));
      Latches.await(asked);
      uploading.interrupt();
      assertThat(end.get(30, TimeUnit.SECONDS).failure()).isEqualTo(new Failure.Cancelled());
    } finally {
      over.countDown();
    }
  }

  /// Returns the uploads that were begun, and neither completed nor aborted.
  private static List<MultipartUpload> begun() {
    try (S3AsyncClient client = S3AsyncClient.crtBuilder().forcePathStyle(true).build()) {
      return client.listMultipartUploads(list -> list.bucket(S3Server.BUCKET)).join().uploads();
    }
  }

  private static byte[] part(byte[] bytes, int number) {
    int from = (number - 1) * PART;
    return Arrays.copyOfRange(bytes, from, Math.min(bytes.length, from + PART));
  }

  /// Begins an upload and uploads some parts, as a process did that was killed then.
  private void begin(byte[] bytes, int... numbers) {
    S3Settings settings =
        new S3Settings(new RetryLimits(1, Duration.ofMillis(10), Duration.ofSeconds(20)));
    try (S3Clients clients = S3Clients.open(settings)) {
      String id =
          call(clients, "CreateMultipartUpload", "POST", "?uploads", new byte[0])
              .element("UploadId");
      for (int number : numbers) {
        S3Call.Answer _ =
            call(
                clients,
                "UploadPart",
                "PUT",
                "?partNumber=" + number + "&uploadId=" + id,
                part(bytes, number));
      }
    }
  }

  private S3Call.Answer call(
      S3Clients clients, String name, String method, String query, byte[] body) {
    URI url = URI.create(clients.url(ObjectName.ofObject(object)) + query);
    return S3Call.start(
            clients, name, method, "test", url, S3Call.Body.of(body), new Cancellation())
        .join();
  }

  private byte[] content() {
    try (StoredFile opened = store.open(object, CachePolicy.BUFFERED);
        SourceFile file = new SourceFile(object, opened);
        Arena arena = Arena.ofShared()) {
      MemorySegment bytes = arena.allocate(file.size());
      boolean _ = file.read(bytes, 0, bytes.byteSize(), false);
      return bytes.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  @Test
  void onlyThePartsThatAreMissingAreSent() {
    byte[] bytes = TestFiles.bytes(3, LARGE);
    begin(bytes, 1, 3);
    proxy.answerUploads(_ -> Answer.RIGHT);
    upload(LARGE);
    assertThat(proxy.uploads()).as("a beginning, a part, and the end").isEqualTo(3);
    assertThat(begun()).isEmpty();
    assertThat(Arrays.equals(content(), bytes)).isTrue();
  }

  @Test
  void partsOfAnotherFileAreSentAnew() {
    byte[] bytes = TestFiles.bytes(3, LARGE);
    byte[] other = bytes.clone();
    other[PART + 5]++;
    begin(other, 1, 2);
    proxy.answerUploads(_ -> Answer.RIGHT);
    upload(LARGE);
    assertThat(proxy.uploads()).as("a beginning, two parts, and the end").isEqualTo(4);
    assertThat(Arrays.equals(content(), bytes)).isTrue();
  }

  @Test
  void anUploadOfWhichNothingFitsIsNotTakenUp() {
    begin(TestFiles.bytes(4, LARGE), 1, 2, 3);
    proxy.answerUploads(_ -> Answer.RIGHT);
    upload(LARGE);
    assertThat(proxy.uploads()).as("a beginning, three parts, and the end").isEqualTo(5);
    assertThat(Arrays.equals(content(), TestFiles.bytes(3, LARGE))).isTrue();
  }

  @Test
  void aFileOfNoBytesIsUploaded() {
    upload(0);
    assertThat(size()).isZero();
  }

  /// Uploads a file in a process that the test kills during the upload.
  static void main(String[] arguments) {
    try (S3Store store = new S3Store()) {
      store.upload(Path.of(arguments[0]), Location.of(arguments[1]));
    }
  }

  @Test
  void anUploadThatWasCutByAKillGoesOnWhereItWas() throws Exception {
    byte[] bytes = TestFiles.bytes(3, MANY);
    Path file = Files.write(folder.resolve("model.safetensors"), bytes);
    List<String> options = new ArrayList<>(List.of("-Xmx256m"));
    for (String property : System.getProperties().stringPropertyNames()) {
      if (property.startsWith("aws.")) {
        options.add("-D" + property + "=" + System.getProperty(property));
      }
    }
    CountDownLatch killed = new CountDownLatch(1);
    CountDownLatch some = new CountDownLatch(5);
    // The requests after the fourth part wait until the process is killed, and then fail with
    // their connection.
    proxy.answerUploads(number -> {
      some.countDown();
      if (number > 4) {
        Latches.await(killed);
        return Answer.CUT_UPLOAD;
      }
      return Answer.RIGHT;
    });
    Process child =
        ChildJvm.command(options, S3UploadFaultTest.class, file, object)
            .redirectErrorStream(true)
            .redirectOutput(Redirect.DISCARD)
            .start();
    Latches.await(some);
    while (partsThere() < 4) {
      assertThat(child.isAlive()).isTrue();
      Thread.onSpinWait();
    }
    var _ = child.toHandle().destroyForcibly();
    child.onExit().join();
    killed.countDown();
    assertThat(size()).as("the old object").isEqualTo(7);
    proxy.answerUploads(_ -> Answer.RIGHT);
    store.upload(file, object);
    assertThat(proxy.uploads())
        .as("a beginning, the other parts, and the end")
        .isEqualTo(1 + Math.ceilDiv(MANY, PART) - 4 + 1);
    assertThat(Arrays.equals(content(), bytes)).isTrue();
  }

  private static int partsThere() {
    try (S3AsyncClient client = S3AsyncClient.crtBuilder().forcePathStyle(true).build()) {
      return client
          .listMultipartUploads(list -> list.bucket(S3Server.BUCKET))
          .join()
          .uploads()
          .stream()
          .mapToInt(upload ->
              client
                  .listParts(list ->
                      list.bucket(S3Server.BUCKET).key(upload.key()).uploadId(upload.uploadId()))
                  .join()
                  .parts()
                  .size())
          .sum();
    }
  }

  @Test
  void wrongCredentialsAreOneLine() {
    server.set("aws.secretAccessKey", "not-the-secret");
    TransferException failure = catchThrowableOfType(TransferException.class, () -> upload(SMALL));
    assertThat(failure.failure()).isInstanceOf(Failure.Remote.class);
    assertThat(failure.getMessage()).contains("status 403").doesNotContain("not-the-secret");
  }
}
