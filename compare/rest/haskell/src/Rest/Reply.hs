-- | Answers, before any HTTP library sees them.
module Rest.Reply
  ( Reply (..),
    userReply,
    createdReply,
    userNotFound,
    userDeleted,
    notFound,
    methodNotAllowed,
    invalidId,
    invalidPage,
    invalidUser,
    bodyTooLarge,
    duplicateEmail,
    databaseUnavailable,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Network.HTTP.Types (Header, Status, badRequest400, conflict409, created201, methodNotAllowed405, mkStatus, notFound404, ok200, serviceUnavailable503)

-- | A status, the headers beside type and length, and a body of JSON.
data Reply = Reply Status [Header] ByteString

-- | 200 with that body.
userReply :: ByteString -> Reply
userReply = Reply ok200 []

-- | 201 with that body: a new user of that id.
createdReply :: Int64 -> ByteString -> Reply
createdReply number = Reply created201 [("Location", "/users/" <> Char8.pack (show number))]

-- | There is no user of that id.
userNotFound :: Reply
userNotFound = Reply notFound404 [] "{\"error\":\"User not found\"}"

-- | The user is gone.
userDeleted :: Reply
userDeleted = Reply ok200 [] "{\"message\":\"User deleted\"}"

-- | No such path.
notFound :: Reply
notFound = Reply notFound404 [] "{\"error\":\"Not found\"}"

-- | The path has other methods: these.
methodNotAllowed :: ByteString -> Reply
methodNotAllowed allowed = Reply methodNotAllowed405 [("Allow", allowed)] "{\"error\":\"Method not allowed\"}"

-- | What stands for an id is none.
invalidId :: Reply
invalidId = Reply badRequest400 [] "{\"error\":\"Invalid id\"}"

-- | A page or a limit is not one.
invalidPage :: Reply
invalidPage = Reply badRequest400 [] "{\"error\":\"Invalid page or limit\"}"

-- | The body is no user.
invalidUser :: Reply
invalidUser = Reply badRequest400 [] "{\"error\":\"Invalid user\"}"

-- | The body is larger than any user.
bodyTooLarge :: Reply
bodyTooLarge = Reply (mkStatus 413 "Payload Too Large") [] "{\"error\":\"Body too large\"}"

-- | Another user has that address.
duplicateEmail :: Reply
duplicateEmail = Reply conflict409 [] "{\"error\":\"Email already exists\"}"

-- | Locked, or it cannot be written.
databaseUnavailable :: Reply
databaseUnavailable = Reply serviceUnavailable503 [] "{\"error\":\"Database unavailable\"}"
